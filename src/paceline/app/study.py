"""A study: take every planned sample once, in order, whatever happens in between.

What was taken is never taken again. A sample that fails is recorded with its reason and tried
again within the spec's limit; a run that an earlier process of ours left behind is taken over.
"""

from __future__ import annotations

import secrets
import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from paceline.app.jobs import FileChunk
from paceline.app.launch import begin_run, finish_run, refresh_run
from paceline.app.progress import RunProgress, remaining_s
from paceline.app.provenance import surroundings
from paceline.app.publish import Publisher
from paceline.app.results import read_sample
from paceline.app.workplace import Workplace, plan_for
from paceline.errors import Interrupted, JobFailed
from paceline.model.plan import Configuration, PlannedSample, RunPlan, StudyPlan
from paceline.model.record import RunRecord, RunState, StudyRecord
from paceline.model.spec import Spec
from paceline.model.summary import Sample, StudyProgress
from paceline.ports import StudyObserver
from paceline.reporting import text

_TELL_EVERY_S = 0.25


@dataclass
class Taken:
    """The samples of a study so far: for each planned one, its latest run."""

    samples: dict[str, Sample] = field(default_factory=dict)

    def missing(self, plan: StudyPlan) -> list[PlannedSample]:
        """Return what is still to be taken, in the order of the plan."""
        return [item for item in plan.samples if not self.has(item.sample_id)]

    def has(self, sample_id: str) -> bool:
        """Whether a planned sample was taken and counts."""
        sample = self.samples.get(sample_id)
        return sample is not None and sample.failed is None

    def in_order(self, plan: StudyPlan) -> tuple[Sample, ...]:
        """Return the samples that there are, in the order of the plan."""
        found = (self.samples.get(item.sample_id) for item in plan.samples)
        return tuple(sample for sample in found if sample is not None)

    def walls(self) -> Mapping[Configuration, list[float]]:
        """Return how long the samples of each configuration took."""
        walls: dict[Configuration, list[float]] = defaultdict(list)
        for sample in self.samples.values():
            if sample.failed is None and sample.wall_s is not None:
                walls[sample.configuration].append(sample.wall_s)
        return walls


@dataclass(frozen=True)
class StudyRunner:
    """One study at work on one workplace."""

    place: Workplace
    spec: Spec
    plan: StudyPlan
    study: StudyRecord
    observer: StudyObserver
    publisher: Publisher

    async def run(self) -> tuple[Sample, ...]:
        """Take what is missing; return all samples, those of earlier times included."""
        begun = self.place.pad.clock.monotonic()
        taken = await self._recover()
        self.observer.planned(self.plan, len(taken.missing(self.plan)))
        self.publisher.publish(taken.in_order(self.plan))
        for item in taken.missing(self.plan):
            self._mind_the_deadline(begun)
            record, sample = await self._take(item)
            taken.samples[item.sample_id] = sample
            self._tell(sample, taken)
            if sample.failed is not None and not taken.walls():
                # Nothing has ever worked: the rest of the grid would fail in the same way.
                raise _nothing_works(record, sample)
        return taken.in_order(self.plan)

    def _mind_the_deadline(self, begun: float) -> None:
        deadline = self.spec.limits.deadline
        if deadline is not None and self.place.pad.clock.monotonic() - begun >= deadline:
            raise Interrupted(
                f"the study's deadline of {deadline:g} s is over",
                hint="what was measured is kept: the same command again goes on from there",
            )

    def _tell(self, sample: Sample, taken: Taken) -> None:
        summary = self.publisher.publish(taken.in_order(self.plan))
        to_come = [item.configuration for item in taken.missing(self.plan)]
        progress = StudyProgress(
            summary=summary,
            done=len(self.plan.samples) - len(to_come),
            total=len(self.plan.samples),
            remaining_s=remaining_s(taken.walls(), to_come),
            table=text.table(summary),
        )
        self.observer.sampled(sample, progress)

    async def _recover(self) -> Taken:
        """Read what earlier processes of ours have taken, and settle what they left behind."""
        store = self.place.pad.store
        taken = Taken()
        # Oldest first, so that the latest attempt at a sample is the one that is kept.
        for record in reversed(store.runs(study=str(self.study.folder))):
            settled = record
            if not record.settled and record.state is not RunState.UNREADABLE:
                settled = await self._take_over(record)
            if settled.sample_id and not taken.has(settled.sample_id):
                taken.samples[settled.sample_id] = read_sample(settled, self.spec)
        return taken

    async def _take_over(self, record: RunRecord) -> RunRecord:
        plan = self.place.pad.store.plan_of(record)
        now = await refresh_run(self.place.pad, plan, record)
        if now.state.ended:
            return now
        # Its ranks are still at work, and would disturb a second run: follow it to its end.
        self.observer.started(now)
        return await self._follow(plan, now)

    async def _take(self, item: PlannedSample) -> tuple[RunRecord, Sample]:
        attempt = 0
        while True:
            record = await self._run_once(item, attempt)
            sample = read_sample(record, self.spec)
            if sample.failed is None or attempt >= self.spec.limits.retries:
                return record, sample
            attempt += 1

    async def _run_once(self, item: PlannedSample, attempt: int) -> RunRecord:
        # A new name for every try: what an earlier one left behind can never be mixed up with it.
        run_id = f"{item.sample_id}-{secrets.token_hex(3)}"
        plan = await plan_for(self.place, self.spec, item.configuration, run_id, measured=True)
        names = tuple(host.host.name for host in plan.hosts)
        record = RunRecord(
            run_id=run_id,
            kind="sample",
            state=RunState.PLANNED,
            configuration=item.configuration,
            folder=self.place.pad.store.folder_for_run(run_id, self.study),
            created_at=self.place.pad.clock.now(),
            launcher=plan.launcher,
            study=self.study.name,
            sample_id=item.sample_id,
            sample_index=item.index,
            attempt=attempt,
            hosts=names,
            provenance=surroundings(self.place, names),
        )
        running = await begin_run(self.place.pad, plan, record)
        self.observer.started(running)
        return await self._follow(plan, running)

    async def _follow(self, plan: RunPlan, record: RunRecord) -> RunRecord:
        progress = RunProgress(
            expected_iterations=self.spec.measurement.total_iterations,
            epochs=epochs_of(self.spec),
        )
        told_at = 0.0

        def listen(chunk: FileChunk) -> None:
            nonlocal told_at
            now = time.monotonic()
            if progress.feed(chunk) and now - told_at > _TELL_EVERY_S:
                told_at = now
                self.observer.progressed(record, progress.fraction, progress.text)

        return await finish_run(self.place.pad, plan, record, listen)


def _nothing_works(record: RunRecord, sample: Sample) -> JobFailed:
    """Return what to raise for a first sample that failed: its own first words."""
    excerpt = record.failure.excerpt.rstrip() if record.failure else ""
    return JobFailed(
        f"{sample.sample_id}: {sample.failed}" + (f"\n{excerpt}" if excerpt else ""),
        hint=f"nothing has worked yet, so the study ends here; see {record.folder / 'logs'}",
    )


def epochs_of(spec: Spec) -> int:
    """Return how many epochs the job trains."""
    for name in ("epochs", "num_epochs"):
        value = spec.job.args.get(name)
        if isinstance(value, int):
            return value
    return 1
