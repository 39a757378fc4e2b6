"""What a speedup compares: the best figure that a configuration and the baseline both have.

Throughput comes first. Where there is none, whole epochs are compared by their time. Where
there is neither, runs are compared by their wall time, which is right only if every
configuration does the same work in total: so never where iterations were counted.
"""

from __future__ import annotations

from paceline.measure.statistics import ratio
from paceline.model.summary import ConfigurationSummary, Estimate

BY_THROUGHPUT = "throughput"
BY_EPOCH = "epoch time"
BY_WALL = "wall time"


def common_basis(item: ConfigurationSummary, baseline: ConfigurationSummary) -> str | None:
    """Return the best figure that both have; wall time only where there is nothing better."""
    if item.items_per_s and baseline.items_per_s:
        return BY_THROUGHPUT
    if item.epoch_s and baseline.epoch_s:
        return BY_EPOCH
    if item.wall_s and baseline.wall_s and not (_looked_inside(item) or _looked_inside(baseline)):
        return BY_WALL
    return None


def _looked_inside(item: ConfigurationSummary) -> bool:
    """Whether anything was measured but the wall time from outside."""
    return any((item.items_per_s, item.iteration_s, item.epoch_s))


def speedup_by(
    basis: str | None, item: ConfigurationSummary, baseline: ConfigurationSummary
) -> Estimate | None:
    """Return how many times as fast as the baseline the configuration is, by that figure."""
    pairs = {
        BY_THROUGHPUT: (item.items_per_s, baseline.items_per_s),
        BY_EPOCH: (baseline.epoch_s, item.epoch_s),
        BY_WALL: (baseline.wall_s, item.wall_s),
    }
    upper, lower = pairs.get(basis or "", (None, None))
    return None if upper is None or lower is None else ratio(upper, lower)
