"""What the advice is about: clusters, launches that were measured, and what is said of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from paceline.errors import UsageError

Basis = Literal["measured", "probe", "scaled", "transferred"]
Regime = Literal["steady", "straggling"]

_SHAPE = "TYPE:NODES:PROCS:BATCH, such as m5.large:4:1:32 (batch size per process)"


@dataclass(frozen=True, order=True)
class Target:
    """A cluster that somebody could use, and the batch size of each of its processes."""

    instance_type: str
    nodes: int
    procs_per_node: int
    batch_size: int

    @property
    def world_size(self) -> int:
        """How many ranks run in total."""
        return self.nodes * self.procs_per_node

    @property
    def words(self) -> str:
        """The target as it is said on the command line."""
        return f"{self.instance_type}:{self.nodes}:{self.procs_per_node}:{self.batch_size}"


def parse_target(words: str) -> Target:
    """Return the target that `TYPE:NODES:PROCS:BATCH` names; else UsageError."""
    name, *numbers = (part.strip() for part in words.split(":"))
    counts = [int(part) for part in numbers if part.isdecimal() and part.isascii()]
    if not name or len(numbers) != 3 or len(counts) != 3 or min(counts) < 1:  # noqa: PLR2004
        raise UsageError(f"{words!r} names no configuration", hint=f"say {_SHAPE}")
    return Target(name, *counts)


def family_of(instance_type: str) -> str:
    """Return what an instance type's sizes have in common: `m5` of `m5.large`."""
    return instance_type.partition(".")[0]


@dataclass(frozen=True)
class EpochTimes:
    """The iterations of one epoch that were seen, each with the mean of its ranks' times.

    `planned` is how many iterations the whole epoch has, where that is known.
    """

    number: int
    planned: int | None
    seconds: Mapping[int, float]

    @property
    def whole(self) -> bool:
        """Whether all of it was seen."""
        return self.planned is not None and len(self.seconds) >= self.planned


@dataclass(frozen=True)
class Launch:
    """One start of a job on one cluster: its epochs, by number.

    `study` tells experimenters apart: what they do not write down, such as thread settings, is
    the same within one study only. `number` tells launches of one configuration apart.
    """

    study: str
    target: Target
    epochs: tuple[EpochTimes, ...]
    number: int = 0

    @property
    def whole_epochs(self) -> tuple[EpochTimes, ...]:
        """The epochs that were seen from end to end."""
        return tuple(epoch for epoch in self.epochs if epoch.whole)


@dataclass(frozen=True)
class Machine:
    """What is known of an instance type, and what an hour of it costs; None is unknown."""

    instance_type: str
    vcpus: float | None = None
    usd_per_hour: float | None = None


@dataclass(frozen=True)
class Prediction:
    """What is said of one target: figures with a 90% interval, or the reason why there are none.

    `iteration_s` is an undisturbed iteration with a full batch; `epoch_s` is what the iterations
    of one epoch take in a new launch, disturbances included. `doubt` is the relative half width
    of the interval for what such launches take on average: it shrinks with every measurement,
    and decides what can be told apart. `launches` is how many were measured of the very target.
    """

    target: Target
    basis: Basis | None = None
    regime: Regime | None = None
    iteration_s: float | None = None
    epoch_s: float | None = None
    epoch_s_low: float | None = None
    epoch_s_high: float | None = None
    cost_usd: float | None = None
    reason: str | None = None
    notes: tuple[str, ...] = ()
    doubt: float | None = None
    launches: int = 0
