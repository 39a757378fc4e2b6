"""How far off a prediction may be: relative half widths of 90% intervals, on the log scale.

They are conformal: for each kind of prediction and each regime, the size that nine in ten of the
errors stayed below when predictions of published runs were checked against what was held out
(`benchmarks/advice.py` does it again, and prints how often the intervals hold). Independent
causes add up as squares.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from paceline.advise.nouns import Regime

CONFIDENCE = 0.90


@dataclass(frozen=True)
class Widths:
    """The half widths of the causes.

    `rest_…`: the rest of the same launch, from its first iterations. `launch_…`: another launch
    of the same configuration; stragglers come and go with the machines that one gets. The others
    count for each doubling: of the hosts beyond those measured (`nodes_guessed` where only one
    host count was measured, so that communication is a guess), of the batch (`batch_partial`
    where only a last, partial batch tells of it, `batch_guessed` where nothing does), of the
    processes of a host. `same_family` and `other_family` are what another instance type costs.
    """

    rest_steady: float = 0.0085
    rest_straggling: float = 0.047
    launch_steady: float = 0.0185
    launch_straggling: float = 0.047
    nodes: float = 0.0185
    nodes_guessed: float = 0.093
    batch: float = 0.023
    batch_partial: float = 0.033
    batch_guessed: float = 0.10
    procs: float = 0.10
    procs_guessed: float = 0.35
    same_family: float = 0.20
    other_family: float = 0.35

    def of_rest(self, regime: Regime) -> float:
        """Return the half width for an epoch of which only the first iterations were seen."""
        return self.rest_straggling if regime == "straggling" else self.rest_steady

    def of_launch(self, regime: Regime, launches: int = 1) -> float:
        """Return the half width for a new launch, after so many launches of the same were seen."""
        one = self.launch_straggling if regime == "straggling" else self.launch_steady
        return one * math.sqrt((1 + 1 / launches) / 2)

    def of_gap(self, gap: Gap) -> float:
        """Return the half width that the way from what was measured to a target costs."""
        nodes = self.nodes if gap.nodes_known else self.nodes_guessed
        guessed = self.batch_partial if gap.batch_partial else self.batch_guessed
        batch = self.batch if gap.batch_known else guessed
        procs = self.procs if gap.procs_known else self.procs_guessed
        return math.hypot(nodes * gap.nodes, batch * gap.batch, procs * gap.procs)

    def of_type(self, *, same_family: bool) -> float:
        """Return the half width that another instance type costs."""
        return self.same_family if same_family else self.other_family


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


def around(value: float, spread: float) -> tuple[float, float]:
    """Return the interval around a positive figure."""
    return value * math.exp(-spread), value * math.exp(spread)
