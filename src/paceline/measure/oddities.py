"""What is odd about runs, by name: runs unlike their fellows, bursts, ranks that lag behind.

Nothing of it is removed from any figure: what is odd may be what the machine is like. A rank
that lags does so for the whole of a run and not in the next one, so it is told of the run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from statistics import fmean, median

from paceline.measure.parts import parts_of_rank
from paceline.measure.samples import full_iterations_s
from paceline.measure.statistics import outlier
from paceline.model.summary import RankSample, Sample

# From published runs: iterations that belong to a burst lie above this many times the median.
BURST_ABOVE = 1.15
_SHORTEST_BURST = 3
_FEWEST_ITERATIONS = 8
_LAGS_ABOVE = 1.15
# A run that is an outlier and yet so near to the others changes no conclusion.
_WORTH_NAMING = 0.02

_FIGURES: tuple[tuple[str, Callable[[Sample], float | None]], ...] = (
    ("throughput", lambda sample: sample.items_per_s),
    ("epoch time", lambda sample: sample.epoch_s),
    ("wall time", lambda sample: sample.wall_s),
)


def outlying_runs(good: Sequence[Sample]) -> tuple[str, ...]:
    """Return in a sentence which of a configuration's samples is unlike the others, if one is."""
    for name, pick in _FIGURES:
        known = [(sample, value) for sample in good if (value := pick(sample)) is not None]
        if len(known) < len(good) or not known:
            continue
        values = [value for _, value in known]
        position = outlier(values)
        if position is None:
            return ()
        typical = median(values[:position] + values[position + 1 :])
        times = values[position] / typical if typical else math.inf
        if abs(times - 1) < _WORTH_NAMING:
            return ()
        index = known[position][0].index
        what = f"its {name} is {times:.2f} times the median of the others"
        return (f"sample {index} is an outlier: {what}; it counts like them",)
    return ()


def bursts(sample: Sample) -> tuple[str, ...]:
    """Return in a sentence which iterations were slow in a row for all ranks together, if any."""
    series = slowest_iterations_s(sample.ranks)
    if len(series) < _FEWEST_ITERATIONS:
        return ()
    typical = median(series)
    found = list(_slow_stretches(series, typical * BURST_ABOVE))
    if not found:
        return ()
    start, stop = max(found, key=lambda stretch: sum(series[slice(*stretch)]))
    first = len(sample.ranks[0].warmup_s)
    times = fmean(series[start:stop]) / typical
    worst = f"iterations {first + start + 1} to {first + stop} took {times:.2f} times the median"
    if len(found) == 1:
        return (f"sample {sample.index}: {worst} (a burst)",)
    share = sum(sum(series[slice(*stretch)]) for stretch in found) / sum(series)
    return (f"sample {sample.index}: {len(found)} bursts, {share:.0%} of its time; {worst}",)


def slowest_iterations_s(ranks: Sequence[RankSample]) -> tuple[float, ...]:
    """Return the time of each iteration by its slowest rank."""
    return tuple(map(max, zip(*(full_iterations_s(rank) for rank in ranks), strict=False)))


def _slow_stretches(series: Sequence[float], above: float) -> Iterator[tuple[int, int]]:
    for slow, group in groupby(enumerate(series), key=lambda pair: pair[1] > above):
        positions = [position for position, _ in group]
        if slow and len(positions) >= _SHORTEST_BURST:
            yield positions[0], positions[-1] + 1


def stragglers(sample: Sample) -> tuple[str, ...]:
    """Return in a sentence each rank that the others had to wait for throughout the run."""
    own = {rank.rank: rank for rank in sample.ranks}
    busy = {
        number: parts.compute_s + parts.input_s
        for number, rank in own.items()
        if (parts := parts_of_rank(rank, alone=len(own) == 1)) is not None
    }
    return tuple(
        f"sample {sample.index}: rank {number}{_on(own[number])} is a straggler: an iteration "
        f"keeps it busy {times:.2f} times as long as the others"
        for number, times in lagging(busy).items()
    )


def lagging(busy_s: dict[int, float]) -> dict[int, float]:
    """Return the ranks that are busy far longer than the others, and how many times as long."""
    found = {}
    for number, seconds in busy_s.items():
        others = [value for other, value in busy_s.items() if other != number]
        typical = median(others) if others else 0.0
        if typical > 0 and seconds > _LAGS_ABOVE * typical:
            found[number] = seconds / typical
    return found


def _on(rank: RankSample) -> str:
    return f" on {rank.host}" if rank.host else ""
