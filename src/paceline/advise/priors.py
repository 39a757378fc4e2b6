"""What is assumed where nothing was measured, and where the assumptions come from.

They were read off the published runs of one DCGAN program on EC2 (`tests/data`, series A to D):
48 MB of all-reduce traffic per iteration, PyTorch on CPUs, gloo. They decide only what the
measurements at hand leave open; whoever measures more sees less of them.
"""

from __future__ import annotations

from dataclasses import dataclass

from paceline.advise.nouns import family_of

# Seconds for one item on one thread: each family's own share of an iteration, communication and
# what does not depend on the batch taken out. Ratios of these carry a measurement to a type that
# was not measured. Twins share a processor generation with a family that was.
_ITEM_S = {"c4": 0.0499, "m4": 0.0587, "c5": 0.0346, "m5": 0.0374, "t2": 0.0590}
_TWINS = {
    **dict.fromkeys(("r4", "i3"), "m4"),
    **dict.fromkeys(("m5d", "m5n", "m5dn", "r5", "r5d", "r5n", "r5dn", "r5b", "t3"), "m5"),
    **dict.fromkeys(("c5d", "c5n"), "c5"),
}
# Seconds that two hosts spend on communication in each iteration.
_TWO_HOSTS_S = {"c4": 0.23, "m4": 0.26, "c5": 0.13, "m5": 0.10, "t2": 0.34}


@dataclass(frozen=True)
class Priors:
    """What a model falls back on.

    `fixed_items`: what an iteration costs beside its batch, in items. `procs_exponent`: an
    iteration slows by this power of the processes that share a host. `two_hosts_share`: what
    communication between two hosts adds to an iteration, for types that have no figure.
    `within_host`: what communication costs inside of a host, of what it costs between hosts.
    `straggler_share`: what stragglers add to an iteration of two burstable hosts.
    """

    fixed_items: float = 1.4
    procs_exponent: float = 0.6
    two_hosts_share: float = 0.12
    within_host: float = 0.3
    straggler_share: float = 0.05
    types: bool = True

    def two_hosts_s(self, instance_type: str, compute_s: float) -> float:
        """Return how long two hosts of a type communicate in an iteration."""
        known = _TWO_HOSTS_S.get(_family(instance_type)) if self.types else None
        return self.two_hosts_share * compute_s if known is None else known

    def item_s(self, instance_type: str) -> float | None:
        """Return the seconds that one thread of a type needs for an item; None if unknown."""
        return _ITEM_S.get(_family(instance_type)) if self.types else None


def _family(instance_type: str) -> str:
    family = family_of(instance_type)
    return _TWINS.get(family, family)
