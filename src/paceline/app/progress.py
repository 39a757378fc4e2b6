"""How far a run is and how long a study still takes, from what the ranks say. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from paceline.app.jobs import FileChunk
from paceline.events import Epoch, Iteration, MalformedEvent, parse_event
from paceline.model.plan import Configuration
from paceline.supervisor.job import EVENTS_FOLDER


@dataclass
class RunProgress:
    """What is known of a run that is going on; fed with the chunks that its hosts send."""

    expected_iterations: int | None = None
    epochs: int = 1
    latest: dict[int, Iteration] = field(default_factory=dict)
    counted: dict[int, int] = field(default_factory=lambda: defaultdict(int))

    def feed(self, chunk: FileChunk) -> bool:
        """Take in a chunk; tell whether it moved the run forward."""
        if not chunk.file.startswith(f"{EVENTS_FOLDER}/"):
            return False
        moved = False
        for line in chunk.text.splitlines():
            try:
                event = parse_event(line)
            except MalformedEvent:
                continue  # a line cut short by a crash; measure will judge the whole file
            if isinstance(event, Iteration):
                self.latest[event.rank] = event
                self.counted[event.rank] += 1
                moved = True
            moved = moved or isinstance(event, Epoch)
        return moved

    @property
    def fraction(self) -> float | None:
        """How much of the run is done, by its slowest rank; None while nobody can know."""
        if not self.latest:
            return None
        slowest = min(self.counted.values())
        if self.expected_iterations:
            return min(1.0, slowest / self.expected_iterations)
        of = next(iter(self.latest.values())).of
        return min(1.0, slowest / (of * self.epochs)) if of else None

    @property
    def text(self) -> str:
        """The state of the run in a few words."""
        if not self.latest:
            return "starting"
        event = self.latest[min(self.latest)]
        words = f"iteration {self.counted[event.rank]}"
        total = self.expected_iterations or event.of
        return f"{words}/{total}" if total else words


def remaining_s(
    walls: Mapping[Configuration, Sequence[float]],
    to_come: Sequence[Configuration],
    running_s: float = 0.0,
) -> float | None:
    """Return the seconds that the samples `to_come` will take; None while nothing is known.

    A configuration that was measured is expected to take as long again; one that was not, as
    long as the average of those that were. `running_s` of the first of them are over already.
    """
    known = [fmean(times) for times in walls.values() if times]
    if not known:
        return None
    typical = fmean(known)
    expected = [fmean(walls[item]) if walls.get(item) else typical for item in to_come]
    if expected:
        expected[0] = max(0.0, expected[0] - running_s)
    return sum(expected)
