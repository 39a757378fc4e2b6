"""Studies whose runs never took place: records, and the files that their ranks left behind."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from paceline.app.publish import Publisher
from paceline.errors import StorageError
from paceline.events import End, Epoch, Event, Iteration, Start
from paceline.model.plan import Configuration, PlannedSample, StudyPlan
from paceline.model.record import RunRecord, RunState, StudyRecord
from paceline.model.spec import Spec, load_spec
from paceline.store.index import Index
from paceline.store.runs import FileRunStore

DEFAULT: Mapping[str, Any] = {"name": "made", "study": {"iterations": 4, "warmup": 1}}


class Clock:
    """Time that stands still."""

    def now(self) -> float:
        """Return the same moment at all times."""
        return 1_760_000_000.0

    monotonic = now

    async def sleep(self, seconds: float) -> None:
        """Do not wait."""
        del seconds


class FullDisk(FileRunStore):
    """A store that has no room for certain files."""

    no_room_for: tuple[str, ...] = ("report.html",)

    def write_result(self, study: StudyRecord, name: str, data: bytes) -> Path:
        """Write, or say that the disk is full."""
        if name in self.no_room_for:
            raise StorageError(f"the disk is full: {name}", hint="free some space")
        return super().write_result(study, name, data)


def line_of(event: Event) -> str:
    """Return an event as its rank writes it."""
    return json.dumps({"kind": event.kind, **vars(event)})


def rank_lines(
    rank: int,
    world_size: int = 1,
    *,
    iterations: int = 5,
    seconds: float = 0.5,
    source: str | None = None,
    ends: bool = True,
    epoch: bool = False,
) -> list[str]:
    """Return what a rank says that trains for some iterations of the same length."""
    info = {} if source is None else {"source": source}
    events: list[Event] = [Start(rank=rank, t=0.0, world_size=world_size, info=info)]
    events += [
        Iteration(rank=rank, t=index * seconds, index=index, seconds=seconds, items=16)
        for index in range(iterations)
    ]
    if epoch:
        events.append(Epoch(rank=rank, t=9.0, seconds=iterations * seconds))
    return [line_of(event) for event in [*events, *([End(rank=rank, t=9.0)] if ends else [])]]


@dataclass
class MadeStudy:
    """One or two configurations, one planned sample each, and the runs that were made."""

    store: FileRunStore
    study: StudyRecord
    plan: StudyPlan
    spec: Spec
    records: list[RunRecord] = field(default_factory=list)

    @property
    def publisher(self) -> Publisher:
        """Return what makes the study's files."""
        return Publisher(self.store, self.study, self.plan, self.spec)

    def add(
        self,
        planned: PlannedSample,
        events: Mapping[int, str | bytes | list[str]],
        **more: Any,
    ) -> RunRecord:
        """Make a run of a planned sample from the content of its ranks' files."""
        run_id = f"{planned.sample_id}-{len(self.records)}"
        record = RunRecord(
            run_id=run_id,
            kind="sample",
            state=RunState.SUCCEEDED,
            configuration=planned.configuration,
            folder=self.study.folder / "runs" / run_id,
            created_at=float(len(self.records)),
            study=self.study.name,
            sample_id=planned.sample_id,
            sample_index=planned.index,
            wall_s=10.0,
        )
        folder = record.folder / "events"
        folder.mkdir(parents=True)
        for rank, content in events.items():
            text = "\n".join(content) + "\n" if isinstance(content, list) else content
            data = text.encode() if isinstance(text, str) else text
            (folder / f"rank-{rank}.jsonl").write_bytes(data)
        self.records.append(replace(record, **more))
        return self.records[-1]


def make_study(
    folder: Path,
    mapping: Mapping[str, Any] = DEFAULT,
    *,
    procs: tuple[int, ...] = (1,),
    samples: int = 1,
    kind: type[FileRunStore] = FileRunStore,
) -> MadeStudy:
    """Return a study without any runs yet."""
    spec = load_spec(dict(mapping), (), check_files=False)
    configurations = tuple(Configuration(1, count, 16) for count in procs)
    planned = tuple(
        PlannedSample(f"{item.label}-s{number}", item, number)
        for number in range(1, samples + 1)
        for item in configurations
    )
    plan = StudyPlan("made", configurations[0], configurations, planned, "0" * 12)
    store = kind(folder / "results", Index(folder / "index.sqlite"), Clock())
    study = StudyRecord("made", folder / "results" / "made", 0.0, plan.digest, {"name": "made"})
    return MadeStudy(store, study, plan, spec)
