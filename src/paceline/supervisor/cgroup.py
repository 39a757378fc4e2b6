"""How much of this machine we may use: a container's limits, not the machine's size."""
# ruff: noqa: PTH123
# That rule asks for pathlib, whose import takes longer than the work that is done here.

from __future__ import annotations

import json
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = "/sys/fs/cgroup"
# Where a machine is said to be another than it is: a rehearsed one has its instance type's size.
DECLARED = "/run/paceline/machine.json"
# What stands in version 1 for "no limit" is a number near 2**63.
_UNLIMITED = 1 << 60


def usable_cores(
    root: str = ROOT, membership: str = "/proc/self/cgroup", declared: str = DECLARED
) -> int:
    """Return the whole cores that the scheduler grants us, at least one."""
    said = _declared(declared, "cores")
    if said is not None:
        return said
    cores = len(os.sched_getaffinity(0))
    quotas = [cores, *(int(quota) for quota in _cpu_quotas(root, membership))]
    return max(1, min(quotas))


def usable_memory_bytes(
    root: str = ROOT, membership: str = "/proc/self/cgroup", declared: str = DECLARED
) -> int | None:
    """Return the memory that we may fill; None where nobody says."""
    said = _declared(declared, "memory_bytes")
    if said is not None:
        return said
    limits = [*_memory_limits(root, membership)]
    total = _total_memory_bytes()
    if total is not None:
        limits.append(total)
    return min(limits, default=None)


def _declared(path: str, name: str) -> int | None:
    """Return what a machine is said to have, where somebody says it."""
    try:
        value = json.loads(_read(path) or "{}").get(name)
    except ValueError:
        return None
    return value if isinstance(value, int) and value > 0 else None


def _total_memory_bytes() -> int | None:
    for line in _read("/proc/meminfo").splitlines():
        if line.startswith("MemTotal:"):
            return int(line.split()[1]) * 1024
    return None


def _cpu_quotas(root: str, membership: str) -> Iterator[float]:
    for folder in _folders(root, membership, "cpu"):
        words = _read(f"{folder}/cpu.max").split()
        if not words:
            words = [_read(f"{folder}/cpu.cfs_{name}_us").strip() for name in ("quota", "period")]
        if all(word.isdigit() for word in words) and int(words[1]) > 0:
            yield int(words[0]) / int(words[1])


def _memory_limits(root: str, membership: str) -> Iterator[int]:
    for folder in _folders(root, membership, "memory"):
        for name in ("memory.max", "memory.limit_in_bytes"):
            word = _read(f"{folder}/{name}").strip()
            if word.isdigit() and int(word) < _UNLIMITED:
                yield int(word)


def _folders(root: str, membership: str, controller: str) -> Iterator[str]:
    """Walk from our own control group up to the root, for both versions of the interface."""
    for line in _read(membership).splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        top = f"{root}/{controllers}" if controllers else root
        while True:
            yield f"{top}{path}".rstrip("/")
            if path in {"", "/"}:
                break
            path = path.rpartition("/")[0]


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""
