"""From the folders of runs to samples, a summary, and the files that people read."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from paceline.errors import StorageError
from paceline.events import MalformedEvent, Start, parse_event
from paceline.measure.extract import ProcessLog, extract, with_extracted
from paceline.measure.samples import sample_from_events
from paceline.model.record import RunRecord
from paceline.model.spec import Spec
from paceline.model.summary import Sample
from paceline.reporting.html import ReportPicture
from paceline.supervisor.job import EVENTS_FOLDER, LOGS_FOLDER, OUT_FOLDER


def event_lines(record: RunRecord) -> dict[int, list[str]]:
    """Return the lines that each rank of a run reported."""
    return {rank: _text(path).split("\n") for rank, path in _event_files(record).items()}


def _event_files(record: RunRecord) -> dict[int, Path]:
    return {
        int(path.stem.removeprefix("rank-")): path
        for path in sorted((record.folder / EVENTS_FOLDER).glob("rank-*.jsonl"))
        if path.stem.removeprefix("rank-").isdecimal()
    }


def log_lines(record: RunRecord) -> dict[str, list[str]]:
    """Return the output of each process of a run."""
    folder = record.folder / LOGS_FOLDER
    return {path.stem: _text(path).splitlines() for path in sorted(folder.glob("*.log"))}


def pictures(records: Iterable[RunRecord], limit: int = 4) -> tuple[ReportPicture, ...]:
    """Return the latest generated picture of each configuration, a few in all."""
    found: dict[str, ReportPicture] = {}
    for record in sorted(records, key=lambda item: -item.created_at):
        paths = sorted(
            (record.folder / OUT_FOLDER).glob("fake_samples_*.png"),
            key=lambda path: path.stat().st_mtime,
        )
        title = record.configuration.title
        if paths and title not in found and len(found) < limit:
            found[title] = ReportPicture(f"{title}: {paths[-1].stem}", paths[-1].read_bytes())
    return tuple(found.values())


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise StorageError(f"{path}: {error.strerror or error}") from error


def read_sample(record: RunRecord, spec: Spec) -> Sample:
    """Return what a run measured: from its events, and from its output where the spec says how."""
    sample = sample_from_events(record, event_lines(record), warmup=spec.study.warmup)
    if not spec.job.extract or sample.failed is not None:
        return sample
    logs = [
        ProcessLog(_ranks_of(name, record.configuration.world_size), tuple(lines))
        for name, lines in log_lines(record).items()
    ]
    return with_extracted(sample, extract(spec.job.extract, logs), warmup=spec.study.warmup)


def trained_on(record: RunRecord) -> str | None:
    """Return what data a run says that it trained on; what is unreadable says nothing."""
    for path in _event_files(record).values():
        start = _start_of(path)
        source = start and (start.info.get("source") or start.info.get("dataset"))
        if source:
            return str(source)
    return None


def _start_of(path: Path) -> Start | None:
    """Return the start at the head of a rank's file, without reading all that follows."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            event = parse_event(file.readline())
    except MalformedEvent:
        return None
    except OSError as error:
        raise StorageError(f"{path}: {error.strerror or error}") from error
    return event if isinstance(event, Start) else None


def _ranks_of(process: str, world_size: int) -> tuple[int, ...]:
    """Return the ranks whose output a process' log holds: its own, or that of all of them."""
    number = process.removeprefix("rank-")
    return (int(number),) if number.isdigit() else tuple(range(world_size))
