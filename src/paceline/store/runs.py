"""The run store on plain files: one folder per run, one per study, JSON that people can read.

paceline-results/
    STUDY/
        study.json-record   see `STUDY_FILE`
        runs/RUN/           run.json, plan.json, events/, logs/, out/
    RUN/                    a run that belongs to no study
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, TextIO

from paceline.errors import Conflict, NotFound, StorageError
from paceline.model.plan import Configuration, RunPlan, StudyPlan
from paceline.model.record import Failure, RunRecord, RunState, StudyRecord, is_rehearsed
from paceline.ports import Clock
from paceline.store import codec
from paceline.store.aside import bring_back, move_aside
from paceline.store.files import storage_errors, write_atomically
from paceline.store.index import Index

RUN_FILE = "run.json"
PLAN_FILE = "plan.json"
STUDY_FILE = "record.json"
LOCK_FILE = ".lock"


class FileRunStore:
    """Runs and studies under a results folder, found again through an index."""

    def __init__(self, results: Path, index: Index, clock: Clock) -> None:
        self._results = results
        self._index = index
        self._clock = clock

    def folder_for_run(self, run_id: str, study: StudyRecord | None = None) -> Path:
        """Return the folder that a run of this id will have; nothing is created."""
        if study is not None:
            return study.folder / "runs" / run_id
        return self._results / run_id

    def create_run(self, record: RunRecord, plan: RunPlan) -> None:
        """Write down a run before it starts."""
        _write_json(record.folder / PLAN_FILE, codec.plan_to_plain(plan))
        self.update_run(record)
        study = record.folder.parent.parent if record.study else None
        self._index.add("run", record.run_id, record.folder, record.created_at, study)

    def update_run(self, record: RunRecord) -> None:
        """Write down what has become of a run."""
        _write_json(record.folder / RUN_FILE, codec.run_to_plain(record))

    def plan_of(self, record: RunRecord) -> RunPlan:
        """Return the plan that a run was created with."""
        path = record.folder / PLAN_FILE
        with _damage(path):
            return codec.plan_from_plain(_read_json(path))

    def run(self, run_id: str) -> RunRecord:
        """Return a run by its id, an unambiguous beginning of it, or its folder."""
        folder = Path(run_id)
        if _holds(folder, RUN_FILE):
            return _read_run(folder.resolve())
        found = [
            (name, path)
            for name, path in self._index.named("run", run_id)
            if _holds(path, RUN_FILE)
        ]
        exact = [path for name, path in found if name == run_id]
        if exact:
            return _read_run(exact[0])
        if len(found) == 1:
            return _read_run(found[0][1])
        if found:
            names = ", ".join(name for name, _ in found[:5])
            raise NotFound(f"{run_id!r} fits {len(found)} runs: {names}", hint="give more of it")
        raise NotFound(f"there is no run {run_id!r}", hint="`paceline ls` shows the runs")

    def runs(
        self, *, study: str | None = None, states: Sequence[RunState] = ()
    ) -> tuple[RunRecord, ...]:
        """Return the runs that are known, newest first."""
        if study is not None:
            folder = self.study(study).folder / "runs"
            paths = tuple(folder.iterdir()) if folder.is_dir() else ()
        else:
            paths = self._index.all("run")
        records = [_listed_run(path) for path in paths if _holds(path, RUN_FILE)]
        wanted = [record for record in records if not states or record.state in states]
        return tuple(sorted(wanted, key=lambda record: -record.created_at))

    def open_study(
        self, plan: StudyPlan, spec: Mapping[str, object], provenance: Mapping[str, object]
    ) -> StudyRecord:
        """Create the study, or return it where it exists with the same digest; else Conflict."""
        folder = self._results / plan.name
        if _holds(folder, STUDY_FILE):
            known = _read_study(folder)
            if known.digest != plan.digest:
                raise Conflict(
                    f"{folder} holds a study of the same name whose job was another one",
                    hint="give this one another name (`--name`), or move that folder away",
                )
            record = replace(known, spec=spec, provenance=provenance)
        else:
            record = StudyRecord(
                name=plan.name,
                folder=folder,
                created_at=self._clock.now(),
                digest=plan.digest,
                spec=spec,
                provenance=provenance,
            )
        _write_json(folder / PLAN_FILE, codec.study_plan_to_plain(plan))
        _write_json(folder / STUDY_FILE, codec.study_to_plain(record))
        self._index.add("study", record.name, folder, record.created_at, None)
        return record

    def make_way(self, name: str, *, rehearsed: bool) -> tuple[tuple[Path, Path], ...]:
        """Move a study's results of the other kind aside; return what went where."""
        folder = self._results / name
        if not _holds(folder, STUDY_FILE):
            return ()
        known = is_rehearsed(_read_study(folder).provenance)
        if known == rehearsed:
            return ()
        with self.lock(name):
            moves = [(folder, move_aside(folder, rehearsed=known))]
        back = None if rehearsed else bring_back(folder, holding=STUDY_FILE)
        return (*moves, *([(back, folder)] if back is not None else []))

    def study(self, name: str) -> StudyRecord:
        """Return a study by its folder, by its name here, or by its name anywhere."""
        for folder in (Path(name), self._results / name):
            if _holds(folder, STUDY_FILE):
                return _read_study(folder.resolve())
        for known, folder in self._index.named("study", name):
            if known == name and _holds(folder, STUDY_FILE):
                return _read_study(folder)
        raise NotFound(f"there is no study {name!r}", hint="`paceline ls` shows the studies")

    def study_plan(self, study: StudyRecord) -> StudyPlan:
        """Return the plan that a study was last opened with."""
        path = study.folder / PLAN_FILE
        with _damage(path):
            return codec.study_plan_from_plain(_read_json(path))

    def studies(self) -> tuple[StudyRecord, ...]:
        """Return the studies that are known, newest first."""
        paths = self._index.all("study")
        readable = []
        for path in paths:
            # A damaged study is named by `report`; it must not hide the others from a list.
            with suppress(StorageError):
                readable += [_read_study(path)] if _holds(path, STUDY_FILE) else []
        return tuple(readable)

    def reread(self, record: RunRecord) -> RunRecord:
        """Return a run as it is written down now."""
        return _read_run(record.folder)

    @contextmanager
    def lock(self, what: RunRecord | str) -> Iterator[None]:
        """Keep others from a run, or a study of a name, while inside; Conflict if one is there."""
        path = self._lock_path(what)
        folder = path.parent
        with storage_errors(path):
            folder.mkdir(parents=True, exist_ok=True)
            file = path.open("a+")
        with file:
            label = what if isinstance(what, str) else what.run_id
            _take_lock(file, label)
            if not _is_at(path, file):
                raise Conflict(f"{label} was moved just now", hint="try again")
            file.truncate(0)
            file.write(str(os.getpid()))
            file.flush()
            try:
                yield
            finally:
                file.truncate(0)

    def holder(self, what: RunRecord | str) -> int | None:
        """Return the process on this machine that holds a lock; None if nobody does."""
        try:
            pid = int(self._lock_path(what).read_text(encoding="ascii"))
            os.kill(pid, 0)
        except PermissionError:
            return pid  # somebody else's process: it is there
        except (OSError, ValueError, OverflowError):
            # Nobody has locked it, or its holder was killed. The lock itself is not tried: for
            # that moment, whoever wants it would be refused.
            return None
        return pid

    def _lock_path(self, what: RunRecord | str) -> Path:
        folder = self._results / what if isinstance(what, str) else what.folder
        return folder / LOCK_FILE

    def write_result(self, study: StudyRecord, name: str, data: bytes) -> Path:
        """Write a result file of a study, atomically."""
        path = study.folder / name
        write_atomically(path, data)
        return path


def _take_lock(file: TextIO, name: str) -> None:
    try:
        # The kernel lets go of the lock when its holder dies, however it dies.
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        file.seek(0)
        holder = file.read().strip() or "unknown"
        raise Conflict(
            f"{name} is being worked on by process {holder}",
            hint="wait for it, or stop it with Ctrl-C where it runs",
        ) from error


def _is_at(path: Path, file: TextIO) -> bool:
    """Whether an open file still has its name: its folder may have been moved in between."""
    try:
        return path.stat().st_ino == os.fstat(file.fileno()).st_ino
    except FileNotFoundError:
        return False


def _holds(folder: Path, name: str) -> bool:
    with storage_errors(folder):
        return (folder / name).is_file()


def _read_run(folder: Path) -> RunRecord:
    path = folder / RUN_FILE
    with _damage(path):
        return codec.run_from_plain(_read_json(path), folder)


def _listed_run(folder: Path) -> RunRecord:
    """Return a run for a list, in which one that is damaged stands among the others."""
    try:
        return _read_run(folder)
    except StorageError as error:
        return RunRecord(
            run_id=folder.name,
            kind="unknown",
            state=RunState.UNREADABLE,
            configuration=Configuration(nodes=1, procs_per_node=1),
            folder=folder,
            created_at=(folder / RUN_FILE).stat().st_mtime,
            study=folder.parent.parent.name if folder.parent.name == "runs" else None,
            failure=Failure(error.message, hint=error.hint),
        )


def _read_study(folder: Path) -> StudyRecord:
    path = folder / STUDY_FILE
    with _damage(path):
        return codec.study_from_plain(_read_json(path), folder)


@contextmanager
def _damage(path: Path) -> Iterator[None]:
    """Say which file does not hold what it should."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise StorageError(
            f"{path} is damaged: {error!r}", hint="move its folder away, or restore it from a copy"
        ) from error


def _write_json(path: Path, data: Mapping[str, Any]) -> None:
    write_atomically(path, (json.dumps(data, indent=1, default=str) + "\n").encode())


def _read_json(path: Path) -> dict[str, Any]:
    with storage_errors(path):
        text = path.read_text(encoding="utf-8")
    data: dict[str, Any] = json.loads(text)
    return data
