"""CPU credits of burstable types: when they are used up, and how slow the machine is then.

A T2 instance starts with 30 credits for each vCPU; a credit is one vCPU at full load for a
minute. It earns its baseline all the time, and falls to it when no credit is left. No early
iteration shows that, so it is worked out. Types from T3 on are `unlimited` unless told
otherwise: they stay quick, and what they use above the baseline is billed.
"""

from __future__ import annotations

from dataclasses import dataclass

from paceline.advise.nouns import family_of

LAUNCH_CREDITS_PER_VCPU = 30.0
# vCPUs of each size, and the load in vCPUs that it can carry for ever.
_T2 = {
    "nano": (1, 0.05),
    "micro": (1, 0.10),
    "small": (1, 0.20),
    "medium": (2, 0.40),
    "large": (2, 0.60),
    "xlarge": (4, 0.90),
    "2xlarge": (8, 1.36),
}
_BURSTABLE = ("t2", "t3", "t3a", "t4g")


@dataclass(frozen=True)
class Credits:
    """How long a burstable machine keeps its pace under a load, and how much slower it is then."""

    lasts_s: float
    slower: float

    def stretched(self, full_speed_s: float) -> float:
        """Return how long a job takes that would take so long at full speed."""
        late = max(0.0, full_speed_s - self.lasts_s)
        return full_speed_s + late * (self.slower - 1)


def burstable(instance_type: str) -> bool:
    """Whether a type lives on CPU credits, billed or not."""
    return family_of(instance_type) in _BURSTABLE


def credits_of(instance_type: str, busy_vcpus: float) -> Credits | None:
    """Return what happens to a fresh instance under a load; None where it keeps its pace."""
    family, size = family_of(instance_type), instance_type.partition(".")[2]
    if family != "t2" or size not in _T2:
        return None
    vcpus, baseline = _T2[size]
    load = min(float(vcpus), busy_vcpus)
    if load <= baseline:
        return None
    lasts_min = LAUNCH_CREDITS_PER_VCPU * vcpus / (load - baseline)
    return Credits(lasts_s=60.0 * lasts_min, slower=load / baseline)
