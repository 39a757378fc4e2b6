"""What an epoch takes and costs, and which configurations nobody needs to look at twice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from paceline.measure.samples import mean_iteration_s
from paceline.model.summary import Sample

_Key = TypeVar("_Key")
_S_PER_HOUR = 3600.0


def expected_epoch_s(sample: Sample) -> float | None:
    """Return the time of a whole epoch: measured, else iterations of an epoch x mean iteration.

    The second leaves out what happens between iterations, and counts a last, partial batch as a
    full one.
    """
    if sample.epoch_s is not None:
        return sample.epoch_s
    counts = [rank.iterations_per_epoch for rank in sample.ranks]
    known = [count for count in counts if count is not None]
    seconds = mean_iteration_s(sample.ranks)
    if seconds is None or not known or len(known) < len(counts):
        return None
    return seconds * max(known)


def cost_per_epoch_usd(sample: Sample) -> float | None:
    """Return what the hosts of a sample cost for an epoch; None where no price is known."""
    seconds, hourly = expected_epoch_s(sample), sample.usd_per_host_hour
    if seconds is None or hourly is None:
        return None
    return seconds / _S_PER_HOUR * hourly * sample.configuration.nodes


def pareto_front(points: Sequence[tuple[_Key, float, float]]) -> tuple[_Key, ...]:
    """Return the keys of the points that no other point beats in both figures, by the first.

    Less is better in both. Of points that are equal in both, all are kept.
    """
    return tuple(
        key
        for key, one, two in sorted(points, key=lambda point: point[1:])
        if not any(
            other_one <= one and other_two <= two and (other_one, other_two) != (one, two)
            for _, other_one, other_two in points
        )
    )
