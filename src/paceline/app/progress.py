"""How far a run is and how long a study still takes, from what the ranks say. Pure."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean

from paceline.app.jobs import FileChunk
from paceline.events import Epoch, Event, Iteration, MalformedEvent, Start, parse_event
from paceline.measure.oddities import lagging
from paceline.model.live import RankNow, RunNow
from paceline.model.plan import Configuration
from paceline.supervisor.job import EVENTS_FOLDER

# What a rank does now is told by so many of its last iterations: enough to be calm.
_RECENT = 20


@dataclass
class _RankProgress:
    """What one rank has said so far."""

    host: str = ""
    counted: int = 0
    recent: deque[Iteration] = field(default_factory=lambda: deque(maxlen=_RECENT))

    def hear(self, event: Event) -> bool:
        """Take in an event; tell whether it moved the rank forward."""
        if isinstance(event, Start):
            # It was started again: its first iterations are slow, and are not those of before.
            self.host = event.host
            self.recent.clear()
        if isinstance(event, Iteration):
            self.counted += 1
            self.recent.append(event)
        return isinstance(event, (Iteration, Epoch))

    def now(self, rank: int, total: int | None) -> RankNow:
        """Return how the rank stands, by its recent iterations."""
        recent = list(self.recent)
        seconds = sum(item.seconds for item in recent)
        items = _sum_if_all([item.items for item in recent])
        return RankNow(
            rank=rank,
            host=self.host,
            iteration=self.counted,
            of=total or (recent[-1].of if recent else None),
            iteration_s=fmean(item.seconds for item in recent) if recent else None,
            items_per_s=items / seconds if items is not None and seconds > 0 else None,
            wait_share=_share([item.wait_s for item in recent], seconds),
            input_share=_share([item.data_s for item in recent], seconds),
            metrics=dict(recent[-1].metrics) if recent else {},
        )


@dataclass
class RunProgress:
    """What is known of a run that is going on; fed with the chunks that its hosts send."""

    expected_iterations: int | None = None
    epochs: int = 1
    _ranks: dict[int, _RankProgress] = field(default_factory=lambda: defaultdict(_RankProgress))

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
            if event is not None:
                moved = self._ranks[event.rank].hear(event) or moved
        return moved

    @property
    def fraction(self) -> float | None:
        """How much of the run is done, by its slowest rank; None while nobody can know."""
        begun = self._begun()
        if not begun:
            return None
        slowest = min(rank.counted for rank in begun.values())
        if self.expected_iterations:
            return min(1.0, slowest / self.expected_iterations)
        of = next(iter(begun.values())).recent[-1].of
        return min(1.0, slowest / (of * self.epochs)) if of else None

    @property
    def text(self) -> str:
        """The state of the run in a few words."""
        begun = self._begun()
        if not begun:
            return "starting"
        first = begun[min(begun)]
        total = self._total(first)
        words = f"iteration {first.counted}"
        return f"{words}/{total}" if total else words

    @property
    def now(self) -> RunNow:
        """How the run stands, with all its ranks."""
        ranks = [
            rank.now(number, self._total(rank)) for number, rank in sorted(self._ranks.items())
        ]
        busy = {
            rank.rank: rank.iteration_s * (1 - rank.wait_share)
            for rank in ranks
            if rank.iteration_s is not None and rank.wait_share is not None
        }
        lags = lagging(busy)
        rates = [rank.items_per_s for rank in ranks]
        known = [rate for rate in rates if rate is not None]
        return RunNow(
            text=self.text,
            fraction=self.fraction,
            ranks=tuple(replace(rank, lag=lags.get(rank.rank)) for rank in ranks),
            items_per_s=sum(known) if known and len(known) == len(rates) else None,
        )

    def _begun(self) -> Mapping[int, _RankProgress]:
        return {number: rank for number, rank in self._ranks.items() if rank.recent}

    def _total(self, rank: _RankProgress) -> int | None:
        if self.expected_iterations:
            return self.expected_iterations
        of = rank.recent[-1].of if rank.recent else None
        return None if of is None else of * self.epochs


def _share(values: Sequence[float | None], of_s: float) -> float | None:
    total = _sum_if_all(values)
    return total / of_s if total is not None and of_s > 0 else None


def _sum_if_all(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known and len(known) == len(values) else None


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
