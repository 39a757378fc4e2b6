"""What is known of a run while it goes on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class RankNow:
    """One rank, by its last iterations; None is what it does not report.

    `iteration` counts from 1, all attempts included. `wait_share` and `input_share` are the parts
    of its time that went to waiting for other ranks and for its input. `lag` says how many times
    as long as the others an iteration keeps a straggler busy; it is None for all others.
    """

    rank: int
    host: str
    iteration: int
    of: int | None = None
    iteration_s: float | None = None
    items_per_s: float | None = None
    wait_share: float | None = None
    input_share: float | None = None
    metrics: Mapping[str, float] = field(default_factory=dict)
    lag: float | None = None


@dataclass(frozen=True)
class RunNow:
    """A run that goes on: how much of it is done, in words and as a share, and its ranks.

    `items_per_s` is the throughput of all ranks; None until all of them report one. `unit` is
    what one item is called.
    """

    text: str
    fraction: float | None = None
    ranks: tuple[RankNow, ...] = ()
    items_per_s: float | None = None
    unit: str = "items"
