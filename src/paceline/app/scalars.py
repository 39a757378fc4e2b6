"""TensorBoard's files of a run, written while it goes on: one folder per rank."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from paceline.app.jobs import FileChunk
from paceline.errors import StorageError
from paceline.events import Iteration, MalformedEvent, parse_event
from paceline.reporting import tensorboard
from paceline.supervisor.job import EVENTS_FOLDER

FOLDER = "tensorboard"


@dataclass
class ScalarFiles:
    """Appends what ranks report to files that TensorBoard follows.

    Whoever follows a run hears all of it from its beginning: the first words of a rank begin its
    file anew, so that nothing stands in it twice.
    """

    folder: Path
    _steps: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    _trouble: StorageError | None = None

    def feed(self, chunk: FileChunk) -> None:
        """Take in a chunk of a run's files."""
        if self._trouble is not None or not chunk.file.startswith(f"{EVENTS_FOLDER}/"):
            return
        found: dict[int, list[Iteration]] = defaultdict(list)
        for line in chunk.text.splitlines():
            try:
                event = parse_event(line)
            except MalformedEvent:
                continue  # measure will judge the whole file
            if isinstance(event, Iteration):
                found[event.rank].append(event)
        for rank, events in found.items():
            self._append(rank, events)

    def _append(self, rank: int, events: list[Iteration]) -> None:
        begun = rank in self._steps
        data = b"" if begun else tensorboard.head(events[0].t)
        for event in events:
            values = tensorboard.scalars_of(event)
            data += tensorboard.scalars(event.t, self._steps[rank], values)
            self._steps[rank] += 1
        path = self.folder / FOLDER / f"rank-{rank}" / "events.out.tfevents.paceline"
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("ab" if begun else "wb") as file:
                file.write(data)
        except OSError as error:
            # The run goes on: it is worth more than what shows it.
            self._trouble = StorageError(f"{path}: {error.strerror or error}")

    def settle(self) -> None:
        """Raise what kept the files from being written, now that the run has ended."""
        if self._trouble is not None:
            raise self._trouble
