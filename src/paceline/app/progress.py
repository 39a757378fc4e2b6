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
from paceline.model.spec import Spec
from paceline.supervisor.job import EVENTS_FOLDER

# What a rank does now is told by so many of its last iterations: enough to be calm.
_RECENT = 20


@dataclass
class _RankProgress:
    """What one rank has said so far."""

    host: str = ""
    counted: int = 0
    trained_s: float = 0.0
    recent: deque[Iteration] = field(default_factory=lambda: deque(maxlen=_RECENT))

    def hear(self, event: Event) -> bool:
        """Take in an event; tell whether it moved the rank forward."""
        if isinstance(event, Start):
            # It was started again: its first iterations are slow, and are not those of before.
            self.host = event.host
            self.recent.clear()
        if isinstance(event, Iteration):
            self.counted += 1
            self.trained_s += event.seconds
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
            of=total,
            iteration_s=fmean(item.seconds for item in recent) if recent else None,
            items_per_s=items / seconds if items is not None and seconds > 0 else None,
            wait_share=_share([item.wait_s for item in recent], seconds),
            input_share=_share([item.data_s for item in recent], seconds),
            metrics=dict(recent[-1].metrics) if recent else {},
        )


@dataclass
class RunProgress:
    """What is known of a run that is going on; fed with the chunks that its hosts send.

    A run lasts for so many iterations, seconds or epochs; if all are None, no end can be foretold.
    """

    expected_iterations: int | None = None
    expected_s: float | None = None
    epochs: int | None = None
    unit: str = "items"
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
        if self.expected_s:
            return min(1.0, min(rank.trained_s for rank in begun.values()) / self.expected_s)
        slowest = min(rank.counted for rank in begun.values())
        of = self._total(next(iter(begun.values())))
        return min(1.0, slowest / of) if of else None

    @property
    def text(self) -> str:
        """The state of the run in a few words."""
        begun = self._begun()
        if not begun:
            return "starting"
        first = begun[min(begun)]
        total = self._total(first)
        if total is None:
            latest = first.recent[-1]
            of = f"/{latest.of}" if latest.of else ""
            return f"epoch {latest.epoch + 1}, iteration {latest.index + 1}{of}"
        return f"iteration {first.counted}/{total}"

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
            unit=self.unit,
        )

    def _begun(self) -> Mapping[int, _RankProgress]:
        return {number: rank for number, rank in self._ranks.items() if rank.recent}

    def _total(self, rank: _RankProgress) -> int | None:
        if self.expected_iterations:
            return self.expected_iterations
        of = rank.recent[-1].of if rank.recent else None
        return None if of is None or self.epochs is None else of * self.epochs


def progress_of(spec: Spec) -> RunProgress:
    """Return what follows a sample of a spec's study, before it has begun."""
    measurement = spec.measurement
    return RunProgress(
        expected_iterations=measurement.total_iterations,
        expected_s=measurement.amount if measurement.kind == "seconds" else None,
        epochs=_epochs_of(spec) if measurement.kind == "epoch" else None,
        unit=spec.job.unit,
    )


def _epochs_of(spec: Spec) -> int:
    """Return how many epochs the job trains."""
    for name in ("epochs", "num_epochs"):
        value = spec.job.args.get(name)
        if isinstance(value, int):
            return value
    return 1


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
