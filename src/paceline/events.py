"""The event schema: what the ranks of a job tell Paceline, one JSON object per line.

Each rank appends to a file of its own, `rank-R.jsonl`, in the folder that the environment
variable `PACELINE_EVENTS` names. Without that variable a reporter is silent, so that a script
that reports runs unchanged anywhere else. Nothing but the standard library is used, because
this module travels to the hosts and is imported by anybody's training script:

    from paceline.events import Reporter

    with Reporter() as progress:
        for epoch in range(epochs):
            for batch in loader:
                loss = train_step(batch)
                progress.iteration(epoch, items=len(batch), metrics={"loss": loss})
            progress.epoch(epoch)

Every event is written by one `write` call before the training goes on: what a rank has said
survives the rank.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Union

if TYPE_CHECKING:
    from typing_extensions import Self

SCHEMA_VERSION = 1
EVENTS_VARIABLE = "PACELINE_EVENTS"

_RANK_VARIABLES = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID")
_LOCAL_RANK_VARIABLES = (
    "LOCAL_RANK",
    "OMPI_COMM_WORLD_LOCAL_RANK",
    "MPI_LOCALRANKID",
    "SLURM_LOCALID",
)
_WORLD_SIZE_VARIABLES = ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS")
_LOCAL_SIZE_VARIABLES = (
    "LOCAL_WORLD_SIZE",
    "OMPI_COMM_WORLD_LOCAL_SIZE",
    "MPI_LOCALNRANKS",
    "SLURM_NTASKS_PER_NODE",
)

Scalar = Union[str, int, float, bool, None]


@dataclass(frozen=True)
class Place:
    """Which rank this process is, as its launcher says through the environment."""

    rank: int = 0
    local_rank: int = 0
    world_size: int = 1
    local_world_size: int = 1

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] | None = None) -> Place:
        """Read torchrun's variables, else Open MPI's, MPICH's or Slurm's, else be alone."""
        env = os.environ if environ is None else environ
        rank = _first_int(env, _RANK_VARIABLES, 0)
        return cls(
            rank=rank,
            local_rank=_first_int(env, _LOCAL_RANK_VARIABLES, rank),
            world_size=_first_int(env, _WORLD_SIZE_VARIABLES, 1),
            local_world_size=_first_int(env, _LOCAL_SIZE_VARIABLES, 1),
        )


def _first_int(env: Mapping[str, str], names: Iterable[str], default: int) -> int:
    for name in names:
        value = env.get(name, "").strip()
        if value.isdigit():
            return int(value)
    return default


@dataclass(frozen=True)
class Event:
    """What all events share: the kind, the rank, and the wall clock in Unix seconds."""

    kind: ClassVar[str] = ""
    rank: int
    t: float


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
    info: Mapping[str, Scalar] = field(default_factory=dict)


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
    of: int | None = None
    seconds: float = 0.0
    items: int | None = None
    data_s: float | None = None
    wait_s: float | None = None
    metrics: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Epoch(Event):
    """An epoch of this rank has ended; `seconds` includes everything that happened in it."""

    kind: ClassVar[str] = "epoch"
    epoch: int = 0
    seconds: float = 0.0
    iterations: int | None = None
    items: int | None = None
    metrics: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Checkpoint(Event):
    """A checkpoint is safely on disk."""

    kind: ClassVar[str] = "checkpoint"
    path: str = ""
    epoch: int = 0
    index: int = 0
    seconds: float = 0.0
    size_bytes: int | None = None


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
class End(Event):
    """The rank is done: `ok`, `stopped` on request, or `failed` with its error."""

    kind: ClassVar[str] = "end"
    status: str = "ok"
    error: str | None = None


EVENT_TYPES: Mapping[str, type[Event]] = {
    kind.kind: kind for kind in (Start, Iteration, Epoch, Checkpoint, Metric, Picture, Note, End)
}


class MalformedEvent(ValueError):
    """A line of an event file is not an event of this schema."""


def parse_event(line: str) -> Event | None:
    """Return the event that a line holds; None for a kind that this version does not know."""
    try:
        record: Any = json.loads(line)
        kind = record.pop("kind")
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise MalformedEvent(f"not an event: {line[:80]!r}") from error
    event_type = EVENT_TYPES.get(kind)
    if event_type is None:
        return None
    known = {item.name for item in fields(event_type)}
    try:
        return event_type(**{name: value for name, value in record.items() if name in known})
    except TypeError as error:
        raise MalformedEvent(f"incomplete {kind} event: {line[:80]!r}") from error


def parse_events(lines: Iterable[str]) -> Iterator[Event]:
    """Parse the lines of one rank; a last line that was cut off by a crash is passed over."""
    pending: MalformedEvent | None = None
    for line in lines:
        if pending is not None:
            raise pending
        if not line.strip():
            continue
        try:
            event = parse_event(line)
        except MalformedEvent as error:
            pending = error
            continue
        if event is not None:
            yield event


class Reporter:
    """Writes the events of this rank; silent where Paceline did not ask for any."""

    def __init__(
        self,
        folder: str | None = None,
        *,
        place: Place | None = None,
        info: Mapping[str, Scalar] | None = None,
    ) -> None:
        self.place = Place.from_environment() if place is None else place
        self._folder = os.environ.get(EVENTS_VARIABLE, "") if folder is None else folder
        self._descriptor = self._open()
        self._last_mark = time.perf_counter()
        self._epoch_mark = self._last_mark
        self._index_in_epoch = 0
        self._items_in_epoch: int | None = None
        self._ended = False
        self._write(
            "start",
            {
                "world_size": self.place.world_size,
                "local_rank": self.place.local_rank,
                "host": socket.gethostname(),
                "pid": os.getpid(),
                "attempt": _first_int(os.environ, ("TORCHELASTIC_RESTART_COUNT",), 0),
                "schema": SCHEMA_VERSION,
                "info": dict(info or {}),
            },
        )

    @property
    def listening(self) -> bool:
        """Whether anybody reads what is reported."""
        return self._descriptor is not None

    def mark(self) -> None:
        """Start the clock of the next iteration now, leaving out what was done before."""
        self._last_mark = time.perf_counter()

    def begin_epoch(self) -> None:
        """Start the clock of an epoch now; without it, an epoch begins where the last ended."""
        self._epoch_mark = self._last_mark = time.perf_counter()
        self._index_in_epoch = 0
        self._items_in_epoch = None

    def iteration(
        self,
        epoch: int,
        index: int | None = None,
        *,
        of: int | None = None,
        seconds: float | None = None,
        items: int | None = None,
        data_s: float | None = None,
        wait_s: float | None = None,
        metrics: Mapping[str, float] | None = None,
    ) -> None:
        """Report one step; its index and duration are counted here unless they are given."""
        now = time.perf_counter()
        if seconds is None:
            seconds = now - self._last_mark
        self._last_mark = now
        if index is None:
            index = self._index_in_epoch
        self._index_in_epoch = index + 1
        if items is not None:
            self._items_in_epoch = (self._items_in_epoch or 0) + items
        body: dict[str, Any] = {"epoch": epoch, "index": index, "seconds": round(seconds, 6)}
        if of is not None:
            body["of"] = of
        if items is not None:
            body["items"] = items
        if data_s is not None:
            body["data_s"] = round(data_s, 6)
        if wait_s is not None:
            body["wait_s"] = round(wait_s, 6)
        if metrics:
            body["metrics"] = {name: float(value) for name, value in metrics.items()}
        self._write("iteration", body)

    def epoch(
        self,
        epoch: int,
        *,
        seconds: float | None = None,
        metrics: Mapping[str, float] | None = None,
    ) -> None:
        """Report the end of an epoch and begin the next."""
        if seconds is None:
            seconds = time.perf_counter() - self._epoch_mark
        self._write(
            "epoch",
            {
                "epoch": epoch,
                "seconds": round(seconds, 6),
                "iterations": self._index_in_epoch,
                "items": self._items_in_epoch,
                "metrics": {name: float(value) for name, value in (metrics or {}).items()},
            },
        )
        self.begin_epoch()

    def checkpoint(
        self, path: str, *, epoch: int, index: int, seconds: float, size_bytes: int | None = None
    ) -> None:
        """Report that a checkpoint is on disk."""
        body = {"path": path, "epoch": epoch, "index": index, "seconds": round(seconds, 6)}
        self._write("checkpoint", {**body, "size_bytes": size_bytes})

    def metric(self, name: str, value: float, *, epoch: int | None = None) -> None:
        """Report a number that belongs to the run."""
        self._write("metric", {"name": name, "value": float(value), "epoch": epoch})

    def picture(
        self, path: str, *, what: str = "", epoch: int | None = None, index: int | None = None
    ) -> None:
        """Report an image file."""
        self._write("picture", {"path": path, "what": what, "epoch": epoch, "index": index})

    def note(self, text: str, *, level: str = "info") -> None:
        """Report a sentence for the reader of the run."""
        self._write("note", {"level": level, "text": text})

    def end(self, status: str = "ok", *, error: str | None = None) -> None:
        """Report the end; later calls change nothing."""
        if self._ended:
            return
        self._ended = True
        self._write("end", {"status": status, "error": error})
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None or (isinstance(error, SystemExit) and not error.code):
            self.end("ok")
        else:
            self.end("failed", error=f"{type(error).__name__}: {error}")

    def _open(self) -> int | None:
        if not self._folder:
            return None
        path = os.path.join(self._folder, f"rank-{self.place.rank}.jsonl")
        try:
            return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        except OSError as error:
            self._give_up(error)
            return None

    def _write(self, kind: str, body: Mapping[str, Any]) -> None:
        if self._descriptor is None:
            return
        head = {"kind": kind, "rank": self.place.rank, "t": round(time.time(), 6)}
        line = json.dumps({**head, **body}, separators=(",", ":")) + "\n"
        try:
            os.write(self._descriptor, line.encode())
        except OSError as error:
            self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        # A training run is worth more than its measurement: say it once, and train on. The
        # missing `end` event makes the sample incomplete, which measure reports as such.
        self._descriptor = None
        reason = os.strerror(error.errno) if error.errno else str(error)
        print(f"paceline: events of rank {self.place.rank} stopped: {reason}", file=sys.stderr)
