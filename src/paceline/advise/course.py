"""What the iterations of a launch say: its steady pace, its disturbances, its epoch.

The first iterations of an epoch wait for loaders and for memory; they count for the epoch, and
for nothing else. What is slower than the rest is either a burst, which is a disturbance that
came and went, or straggling, which is a state of the launch and goes on.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from paceline.advise.nouns import EpochTimes, Launch, Regime

WARMUP = 3
# An iteration this much above the median was disturbed.
DISTURBED = 1.15
# So many disturbed ones in a row are a burst; stragglers come singly or in twos.
_LEAST_BURST = 3
# One burst came and went; with so many, they are how the launch goes on.
_STATE = 2
# From this share of disturbed iterations on, a launch is called straggling.
_STRAGGLING_SHARE = 0.01


@dataclass(frozen=True)
class Partial:
    """A last batch that was not full: how many items each rank had, and how long it took."""

    items: float
    seconds: float


@dataclass(frozen=True)
class Course:
    """A launch in figures.

    `steady_s` is the median of the settled, full iterations; `mean_s` is their mean without
    bursts, and says how the launch goes on. `start_s` is what the first iterations of an epoch
    took beyond that. `items` is how many items an epoch has, over all ranks.
    """

    launch: Launch
    steady_s: float
    mean_s: float
    start_s: float
    settled: int
    bursts: int
    regime: Regime
    items: int | None
    partial: Partial | None

    @property
    def excess_s(self) -> float:
        """What stragglers add to an iteration, on average."""
        return max(0.0, self.mean_s - self.steady_s)


def course_of(launch: Launch, items: int | None) -> Course:
    """Return the figures of a launch whose epochs have so many items."""
    full = [list(_full(epoch, launch, items)) for epoch in launch.epochs]
    settled = [seconds for epoch in full for index, seconds in epoch if index >= WARMUP]
    if not settled:  # all that there is is the warm-up: its last iterations are the best guess
        settled = [epoch[-1][1] for epoch in full if epoch]
    if not settled:  # an epoch of a single, partial batch
        settled = [fmean(epoch.seconds.values()) for epoch in launch.epochs]
    steady = median(settled)
    calm, bursts = _without_bursts(settled, steady)
    if bursts >= _STATE:
        calm = settled
    disturbed = sum(seconds > DISTURBED * steady for seconds in calm)
    mean = math.fsum(calm) / len(calm)
    return Course(
        launch=launch,
        steady_s=steady,
        mean_s=mean,
        start_s=_start_s(full, mean),
        settled=len(settled),
        bursts=bursts,
        regime="straggling" if disturbed > _STRAGGLING_SHARE * len(calm) else "steady",
        items=items,
        partial=_partial(launch, items),
    )


def batches_of(items: int, world_size: int, batch_size: int) -> tuple[int, float]:
    """Return the iterations of an epoch, and how full the last batch of each rank is.

    Every rank gets as many items, so some of them twice where they cannot be shared out evenly.
    """
    own = -(-items // world_size)
    count = -(-own // batch_size)
    return count, (own - (count - 1) * batch_size) / batch_size


def effective_iterations(items: int, world_size: int, batch_size: int) -> float:
    """Return the iterations of an epoch, its last batch counted as the fraction that it is."""
    count, last = batches_of(items, world_size, batch_size)
    return count - 1 + last


def epoch_s(course: Course) -> float | None:
    """Return how long an epoch of this launch takes in iterations; None if that is not known.

    Whole epochs speak for themselves. Otherwise: what was seen of the epoch that was seen
    furthest, and the mean for each iteration that is left.
    """
    whole = course.launch.whole_epochs
    if whole:
        return fmean(math.fsum(epoch.seconds.values()) for epoch in whole)
    epoch = max(course.launch.epochs, key=lambda item: (len(item.seconds), -item.number))
    left = _left(course, epoch)
    return None if left is None else math.fsum(epoch.seconds.values()) + left * course.mean_s


def _left(course: Course, epoch: EpochTimes) -> float | None:
    """Return how many iterations of an epoch were not seen, its last one as a fraction."""
    target = course.launch.target
    if course.items is None:
        return None
    count, last = batches_of(course.items, target.world_size, target.batch_size)
    planned = epoch.planned or count
    return planned - len(epoch.seconds) - (0 if planned - 1 in epoch.seconds else 1 - last)


def items_of(launch: Launch) -> range | None:
    """Return how many items an epoch may have, as far as its number of iterations tells."""
    planned = next((epoch.planned for epoch in launch.epochs if epoch.planned), None)
    if planned is None:
        return None
    step = launch.target.batch_size * launch.target.world_size
    return range((planned - 1) * step + 1, planned * step + 1)


def likely_items(launches: Sequence[Launch]) -> int | None:
    """Return how many items the epochs of these launches have, if one number fits them all.

    Data sets have round sizes: of all that fit, the roundest is taken.
    """
    ranges = [found for launch in launches if (found := items_of(launch)) is not None]
    if not ranges:
        return None
    low, high = max(item.start for item in ranges), min(item.stop for item in ranges) - 1
    return roundest(low, high) if low <= high else None


def roundest(low: int, high: int) -> int:
    """Return the number between two others, both included, that ends in the most zeros."""
    step = 1
    while -(-low // (step * 10)) * step * 10 <= high:
        step *= 10
    candidates = range(-(-low // step) * step, high + 1, step)
    return candidates[len(candidates) // 2]


def _full(epoch: EpochTimes, launch: Launch, items: int | None) -> Iterator[tuple[int, float]]:
    """Yield the iterations of an epoch that had, or may have had, a full batch."""
    last = None if epoch.planned is None else epoch.planned - 1
    size = launch.target.world_size, launch.target.batch_size
    if items is not None and batches_of(items, *size)[1] >= 1:
        last = None
    yield from ((index, seconds) for index, seconds in epoch.seconds.items() if index != last)


def _without_bursts(times: Sequence[float], steady: float) -> tuple[list[float], int]:
    """Return the times that no burst holds, and how many bursts there were."""
    calm: list[float] = []
    row: list[float] = []
    bursts = 0
    for seconds in (*times, 0.0):
        if seconds > DISTURBED * steady:
            row.append(seconds)
            continue
        if len(row) >= _LEAST_BURST:
            bursts += 1
        else:
            calm += row
        row = []
        calm.append(seconds)
    return calm[:-1], bursts


def _start_s(epochs: Sequence[Sequence[tuple[int, float]]], mean: float) -> float:
    """Return what the first iterations of an epoch took beyond the mean; the least of epochs."""
    starts = [
        math.fsum(seconds - mean for index, seconds in epoch if index < WARMUP)
        for epoch in epochs
        if epoch and epoch[0][0] == 0
    ]
    return max(0.0, fmean(starts)) if starts else 0.0


def _partial(launch: Launch, items: int | None) -> Partial | None:
    """Return the last, partial batch; of several epochs, the quickest: it was disturbed least."""
    if items is None:
        return None
    target = launch.target
    count, fraction = batches_of(items, target.world_size, target.batch_size)
    seen = [
        epoch.seconds[count - 1]
        for epoch in launch.epochs
        if epoch.planned == count and count - 1 in epoch.seconds
    ]
    if not seen or fraction >= 1:
        return None
    return Partial(items=fraction * target.batch_size, seconds=min(seen))
