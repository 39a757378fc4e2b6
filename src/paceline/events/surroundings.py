"""What held while a rank was at work, as it really was: its threads, its cores, stolen CPU time.

Settings are read at the end, from those who act on them: what a variable asked for, a library
may have overruled, and a script may have changed.
"""
# That rule asks for pathlib, whose import takes longer than all that is done here.

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from paceline.events.nouns import Scalar

_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OMP_PROC_BIND", "KMP_AFFINITY")
# In /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal.
_FIELDS, _STEAL = 8, 7


def settings() -> dict[str, Scalar]:
    """Return the settings that decide how many cores this process works with."""
    found: dict[str, Scalar] = {
        name: value for name in _VARIABLES if (value := os.environ.get(name)) is not None
    }
    if hasattr(os, "sched_getaffinity"):
        found["cpus"] = len(os.sched_getaffinity(0))
    torch: Any = sys.modules.get("torch")
    threads = getattr(torch, "get_num_threads", None)
    if threads is not None:
        found["torch_threads"] = int(threads())
    return found


def cpu_ticks(path: str = "/proc/stat") -> tuple[int, int] | None:
    """Return the ticks of all CPUs since the machine started, and how many were stolen."""
    try:
        with open(path, encoding="ascii") as file:
            numbers = [int(word) for word in file.readline().split()[1 : 1 + _FIELDS]]
    except (OSError, ValueError):
        return None
    return (sum(numbers), numbers[_STEAL]) if len(numbers) == _FIELDS else None


def steal_share(before: tuple[int, int] | None, after: tuple[int, int] | None) -> float | None:
    """Return the share of CPU time between two readings that the hypervisor gave to others."""
    if before is None or after is None or after[0] <= before[0]:
        return None
    return round(max(0, after[1] - before[1]) / (after[0] - before[0]), 5)
