"""What a rank can say. The names of the types below are also how values are checked."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Mapping, Union

SCHEMA_VERSION = 1
EVENTS_VARIABLE = "PACELINE_EVENTS"

Scalar = Union[str, int, float, bool, None]
# A duration: finite and not negative. `float` alone may be anything, NaN too.
Seconds = float
Count = int  # of things, and so not negative; `int` alone may be
Metrics = Mapping[str, float]
Info = Mapping[str, Scalar]


@dataclass(frozen=True)
class Event:
    """What all events share: the kind, the rank, and the wall clock in Unix seconds."""

    kind: ClassVar[str] = ""
    rank: int
    t: Seconds


@dataclass(frozen=True)
class Start(Event):
    """A rank has started; `info` describes its surroundings (versions, device, threads)."""

    kind: ClassVar[str] = "start"
    world_size: int = 1
    local_rank: int = 0
    host: str = ""
    pid: int = 0
    attempt: int = 0
    schema: int = SCHEMA_VERSION
    info: Info = field(default_factory=dict)


@dataclass(frozen=True)
class Iteration(Event):
    """One step of training took `seconds`, counted between two steps unless it was given.

    `items` are what this rank worked through in it (images, for our trainers). `data_s` and
    `wait_s` are the parts of `seconds` that went to waiting for input and for other ranks;
    they are None where nobody measured them.
    """

    kind: ClassVar[str] = "iteration"
    epoch: int = 0
    index: int = 0
    of: Count | None = None
    seconds: Seconds = 0.0
    items: Count | None = None
    data_s: Seconds | None = None
    wait_s: Seconds | None = None
    metrics: Metrics = field(default_factory=dict)


@dataclass(frozen=True)
class Epoch(Event):
    """An epoch of this rank has ended; `seconds` includes everything that happened in it."""

    kind: ClassVar[str] = "epoch"
    epoch: int = 0
    seconds: Seconds = 0.0
    iterations: Count | None = None
    items: Count | None = None
    metrics: Metrics = field(default_factory=dict)


@dataclass(frozen=True)
class Checkpoint(Event):
    """A checkpoint is safely on disk."""

    kind: ClassVar[str] = "checkpoint"
    path: str = ""
    epoch: int = 0
    index: int = 0
    seconds: Seconds = 0.0
    size_bytes: Count | None = None


@dataclass(frozen=True)
class Metric(Event):
    """A number that belongs to the run and not to an iteration, such as a quality score."""

    kind: ClassVar[str] = "metric"
    name: str = ""
    value: float = 0.0
    epoch: int | None = None


@dataclass(frozen=True)
class Picture(Event):
    """An image file that the job has written."""

    kind: ClassVar[str] = "picture"
    path: str = ""
    what: str = ""
    epoch: int | None = None
    index: int | None = None


@dataclass(frozen=True)
class Note(Event):
    """A sentence for the person who reads the run, such as a fallback that was taken."""

    kind: ClassVar[str] = "note"
    level: str = "info"
    text: str = ""


@dataclass(frozen=True)
class Interruption(Event):
    """The host of this rank will be taken back (spot): what will be done with it, and when."""

    kind: ClassVar[str] = "interruption"
    action: str = ""
    at: Seconds = 0.0


@dataclass(frozen=True)
class End(Event):
    """The rank is done: `ok`, `stopped` on request, or `failed` with its error.

    `info` is what held while it worked: its threads and cores, and the CPU time that was stolen.
    """

    kind: ClassVar[str] = "end"
    status: str = "ok"
    error: str | None = None
    info: Info = field(default_factory=dict)


EVENT_TYPES: Mapping[str, type[Event]] = {
    kind.kind: kind
    for kind in (Start, Iteration, Epoch, Checkpoint, Metric, Picture, Note, Interruption, End)
}
