"""Quotas: which limit of vCPUs counts for a type, and whether what is asked for fits under it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Quota:
    """One limit, by its code at Service Quotas and its name for people."""

    code: str
    name: str


# By the letters that a type begins with, the longest first; on demand, and on the spot market.
_FAMILIES: tuple[tuple[tuple[str, ...], Quota, Quota], ...] = (
    (("inf",), Quota("L-1945791B", "Running On-Demand Inf instances"),
     Quota("L-B5D1601B", "All Inf Spot Instance Requests")),
    (("trn",), Quota("L-2C3B7624", "Running On-Demand Trn instances"),
     Quota("L-6B0D517C", "All Trn Spot Instance Requests")),
    (("dl",), Quota("L-6E869C2A", "Running On-Demand DL instances"),
     Quota("L-85EED4F7", "All DL Spot Instance Requests")),
    (("g", "vt"), Quota("L-DB2E81BA", "Running On-Demand G and VT instances"),
     Quota("L-3819A6DF", "All G and VT Spot Instance Requests")),
    (("p",), Quota("L-417A185B", "Running On-Demand P instances"),
     Quota("L-7212CCBC", "All P4, P3 and P2 Spot Instance Requests")),
    (("x",), Quota("L-7295265B", "Running On-Demand X instances"),
     Quota("L-E3A00192", "All X Spot Instance Requests")),
    (("f",), Quota("L-74FC7D96", "Running On-Demand F instances"),
     Quota("L-88CF9481", "All F Spot Instance Requests")),
    (("u", "u7i", "u7in", "u7inh"), Quota("L-43DA4232", "Running On-Demand High Memory instances"),
     Quota("L-43DA4232", "Running On-Demand High Memory instances")),
    (("hpc",), Quota("L-F7808C92", "Running On-Demand HPC instances"),
     Quota("L-34B43A08", "All Standard Spot Instance Requests")),
)  # fmt: skip
_STANDARD = (
    Quota("L-1216C47A", "Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances"),
    Quota("L-34B43A08", "All Standard (A, C, D, H, I, M, R, T, Z) Spot Instance Requests"),
)


def quota_of(instance_type: str, market: str) -> Quota:
    """Return the limit that counts the vCPUs of a type."""
    family = instance_type.partition(".")[0]
    for beginnings, on_demand, spot in _FAMILIES:
        if any(_begins(family, word) for word in beginnings):
            return spot if market == "spot" else on_demand
    return _STANDARD[market == "spot"]


def _begins(family: str, word: str) -> bool:
    rest = family[len(word) :]
    return family.startswith(word) and not rest[:1].isalpha()


def exceeded(
    quota: Quota, limit: float | None, in_use: int | None, vcpus: int, hosts: int
) -> str | None:
    """Return why so many more hosts do not fit under a limit; None if they do, or nobody knows."""
    if limit is None:
        return None
    wanted = vcpus * hosts
    if (in_use or 0) + wanted <= limit:
        return None
    used = f", of which {in_use} are in use" if in_use else ""
    return (
        f"{hosts} hosts need {wanted} vCPUs, and the account may have {limit:g} at a time{used} "
        f"(quota {quota.code}: {quota.name})"
    )
