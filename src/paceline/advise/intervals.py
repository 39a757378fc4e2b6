"""How far off a prediction may be: relative half widths of 90% intervals, on the log scale.

They are conformal: for each kind of prediction and each regime, the size that nine in ten of the
errors stayed below when predictions of published runs were checked against what was held out
(`benchmarks/advise.py` does it again, and prints how often the intervals hold). Independent
causes add up as squares.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from paceline.advise.nouns import Regime

CONFIDENCE = 0.90
# The rest of the same launch, from its first iterations.
_REST: dict[Regime, float] = {"steady": 0.011, "straggling": 0.055}
# Another launch of the same configuration: stragglers come and go with the machines one gets.
_LAUNCH: dict[Regime, float] = {"steady": 0.020, "straggling": 0.060}
# For each doubling of the hosts beyond those measured; without two host counts to learn from,
# communication is a guess.
_NODES, _NODES_GUESSED = 0.020, 0.12
# For each doubling or halving of the batch: where two sizes were measured, where only a last,
# partial batch was, and where nothing was.
_BATCH, _BATCH_PARTIAL, _BATCH_GUESSED = 0.025, 0.040, 0.10
# For each doubling of the processes of a host.
_PROCS, _PROCS_GUESSED = 0.10, 0.35
# Another instance type: of the same family, or of another one.
_SAME_FAMILY, _OTHER_FAMILY = 0.20, 0.35


@dataclass(frozen=True)
class Gap:
    """How far a target lies from what was measured, in doublings, and what is known on the way."""

    nodes: float = 0.0
    batch: float = 0.0
    procs: float = 0.0
    nodes_known: bool = True
    batch_known: bool = True
    batch_partial: bool = True
    procs_known: bool = True

    @property
    def spread(self) -> float:
        """The relative half width that the way there costs."""
        nodes = _NODES if self.nodes_known else _NODES_GUESSED
        guessed = _BATCH_PARTIAL if self.batch_partial else _BATCH_GUESSED
        batch = _BATCH if self.batch_known else guessed
        procs = _PROCS if self.procs_known else _PROCS_GUESSED
        return math.hypot(nodes * self.nodes, batch * self.batch, procs * self.procs)


def spread_of_rest(regime: Regime) -> float:
    """Return the half width for an epoch of which only the first iterations were seen."""
    return _REST[regime]


def spread_of_launch(regime: Regime, launches: int = 1) -> float:
    """Return the half width for a new launch, after so many launches of the same were seen."""
    return _LAUNCH[regime] * math.sqrt((1 + 1 / launches) / 2)


def spread_of_type(*, same_family: bool) -> float:
    """Return the half width that another instance type costs."""
    return _SAME_FAMILY if same_family else _OTHER_FAMILY


def around(value: float, spread: float) -> tuple[float, float]:
    """Return the interval around a positive figure."""
    return value * math.exp(-spread), value * math.exp(spread)
