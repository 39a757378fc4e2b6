"""Are the hosts alike enough for one job: GPUs, disks, interpreters, clocks."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from paceline.app.pairs import End, Fault
from paceline.errors import PacelineError
from paceline.model.command import Command
from paceline.model.host import HostFacts

# Less than this, and not even the logs of a run can be written.
_NO_DISK_BYTES = 100 * 2**20
_CLOCK_WITHIN_S = 10.0


@dataclass(frozen=True)
class ClockOffset:
    """How far a host's clock is ahead of ours, and how exactly we know."""

    seconds: float
    within_s: float

    @property
    def surely_s(self) -> float:
        """By how much it is off at least."""
        return max(0.0, abs(self.seconds) - self.within_s)


def host_faults(facts: Mapping[str, HostFacts], *, ours: bool) -> tuple[Fault, ...]:
    """Return what keeps single hosts from taking part. Pure.

    `ours` is a job of Python ranks, which choose their backend by the device that they find.
    """
    faults = [
        Fault(
            name,
            f"its disk is full: {(found.disk_free_bytes or 0) / 2**20:.0f} MiB are free",
            "free some space there",
        )
        for name, found in facts.items()
        if found.disk_free_bytes is not None and found.disk_free_bytes < _NO_DISK_BYTES
    ]
    with_gpus = [name for name, found in facts.items() if found.gpus]
    if ours and with_gpus and len(with_gpus) < len(facts):
        faults += [
            Fault(
                name,
                f"it has no GPU, and {with_gpus[0]} has {len(facts[with_gpus[0]].gpus)}",
                "leave it out, or look whether its driver is installed (`nvidia-smi`)",
            )
            for name, found in facts.items()
            if not found.gpus
        ]
    return tuple(faults)


def python_differences(facts: Mapping[str, HostFacts]) -> Mapping[str, str]:
    """Return the hosts whose Python is of another minor version than the first host's. Pure."""
    (_, first), *others = facts.items()
    wanted = _minor(first.python_version)
    return {
        name: item.python_version for name, item in others if _minor(item.python_version) != wanted
    }


def _minor(version: str) -> tuple[str, ...]:
    return tuple(version.split(".")[:2])


async def clock_offsets(ends: Sequence[End]) -> Mapping[str, ClockOffset | None]:
    """Ask every host for its time; None where it cannot be had."""
    found = await asyncio.gather(*(_offset(end) for end in ends))
    return {end.host.name: offset for end, offset in zip(ends, found, strict=True)}


async def _offset(end: End) -> ClockOffset | None:
    """Compare the clocks, twice: the first answer may have waited for a connection."""
    best: ClockOffset | None = None
    for _ in range(2):
        begun = time.time()
        try:
            done = await end.link.run(Command(("date", "+%s.%N")), timeout_s=_CLOCK_WITHIN_S)
            ended, there = time.time(), float(done.stdout)
        except (PacelineError, ValueError):
            return best
        offset = ClockOffset(there - (begun + ended) / 2, (ended - begun) / 2)
        best = offset if best is None or offset.within_s < best.within_s else best
    return best
