"""Writes the events of a rank from inside somebody's training, which it must never disturb."""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any

from paceline.events.nouns import EVENTS_VARIABLE, SCHEMA_VERSION, Scalar
from paceline.events.place import Place, first_int
from paceline.events.surroundings import cpu_ticks, settings, steal_share
from paceline.events.values import shapes_of

if TYPE_CHECKING:
    from typing_extensions import Self

# Made once: `json.dumps` with separators of one's own would make an encoder for every event.
_encode = json.JSONEncoder(separators=(",", ":")).encode


class Reporter:
    """Writes the events of this rank; silent where Paceline did not ask for any.

    Numbers may be anything that has the value of one: of Python, of NumPy, a tensor with one
    element. An event with a value that is none is left out, and said so once; nothing is raised.
    """

    def __init__(
        self,
        folder: str | None = None,
        *,
        place: Place | None = None,
        info: Mapping[str, Scalar] | None = None,
    ) -> None:
        self.place = Place.from_environment() if place is None else place
        self._folder = os.environ.get(EVENTS_VARIABLE, "") if folder is None else folder
        self._complained = False
        self._descriptor = self._open()
        self._last_mark = time.perf_counter()
        self._epoch_mark = self._last_mark
        self._index_in_epoch = 0
        self._items_in_epoch: int | None = None
        self._ended = False
        self._ticks = cpu_ticks() if self.listening else None
        if self.listening:
            self._start(info or {})

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
        since_s = now - self._last_mark
        self._last_mark = now
        told = self._write(
            "iteration",
            {
                "epoch": epoch,
                "index": self._index_in_epoch if index is None else index,
                "seconds": since_s if seconds is None else seconds,
                "of": of,
                "items": items,
                "data_s": data_s,
                "wait_s": wait_s,
                "metrics": {} if metrics is None else metrics,
            },
        )
        if told is not None:
            self._index_in_epoch = told["index"] + 1
            if "items" in told:
                self._items_in_epoch = (self._items_in_epoch or 0) + told["items"]

    def epoch(
        self,
        epoch: int,
        *,
        seconds: float | None = None,
        metrics: Mapping[str, float] | None = None,
    ) -> None:
        """Report the end of an epoch and begin the next."""
        since_s = time.perf_counter() - self._epoch_mark
        self._write(
            "epoch",
            {
                "epoch": epoch,
                "seconds": since_s if seconds is None else seconds,
                "iterations": self._index_in_epoch,
                "items": self._items_in_epoch,
                "metrics": {} if metrics is None else metrics,
            },
        )
        self.begin_epoch()

    def checkpoint(
        self, path: str, *, epoch: int, index: int, seconds: float, size_bytes: int | None = None
    ) -> None:
        """Report that a checkpoint is on disk."""
        where = {"path": path, "epoch": epoch, "index": index}
        self._write("checkpoint", {**where, "seconds": seconds, "size_bytes": size_bytes})

    def metric(self, name: str, value: float, *, epoch: int | None = None) -> None:
        """Report a number that belongs to the run."""
        self._write("metric", {"name": name, "value": value, "epoch": epoch})

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
        if self.listening:
            self._write("end", {"status": status, "error": error, "info": self._held()})
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _held(self) -> Mapping[str, Scalar]:
        """Return what held while this rank worked; of what cannot be found out, nothing."""
        try:
            stolen = steal_share(self._ticks, cpu_ticks())
            return {**settings(), **({} if stolen is None else {"cpu_steal": stolen})}
        except Exception:  # noqa: BLE001 - as in _write
            return {}

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
            self.end("failed", error=f"{type(error).__name__}: {_words_of(error)}")

    def _open(self) -> int | None:
        if not self._folder:
            return None
        path = os.path.join(self._folder, f"rank-{self.place.rank}.jsonl")
        try:
            return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        except (OSError, ValueError) as error:
            self._give_up(error)
            return None

    def _start(self, info: Mapping[str, Scalar]) -> None:
        surroundings: dict[str, Any] = {
            "world_size": self.place.world_size,
            "local_rank": self.place.local_rank,
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "attempt": first_int(os.environ, ("TORCHELASTIC_RESTART_COUNT",), 0),
            "schema": SCHEMA_VERSION,
        }
        try:
            told = shapes_of("start")["info"].tell(info)
        except Exception as error:  # noqa: BLE001 - as in _write
            # Without its start, and in front, a rank's attempts could not be told apart.
            self._write("start", surroundings)
            self._leave_out("start", "info", error)
        else:
            self._write("start", {**surroundings, "info": told})

    def _write(self, kind: str, raw: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Write an event, and return what was told; None if nobody listens or it makes no event."""
        if self._descriptor is None:
            return None
        told: dict[str, Any] = {
            "kind": kind,
            "rank": self.place.rank,
            "t": round(time.time(), 6),
        }
        shapes = shapes_of(kind)
        name = ""
        try:
            for name, value in raw.items():
                tell, _, may_be_none = shapes[name]
                if value is not None or not may_be_none:
                    told[name] = tell(value)
            line = _encode(told) + "\n"
        except Exception as error:  # noqa: BLE001 - whatever a value does, the training goes on
            self._leave_out(kind, name, error)
            return None
        try:
            self._append(line.encode("ascii"))
        except OSError as error:
            self._give_up(error)
        return told

    def _append(self, data: bytes) -> None:
        descriptor = self._descriptor
        while data and descriptor is not None:
            # One call is enough, but for disks that fill up and signals that interrupt.
            data = data[os.write(descriptor, data) :]

    def _leave_out(self, kind: str, name: str, error: Exception) -> None:
        """Say once, here and to the reader of the run, that an event is missing."""
        if self._complained:
            return
        self._complained = True
        reason = f"{type(error).__name__}: {_words_of(error)}"
        which = f"{kind} events whose {name} cannot be told"
        text = f"rank {self.place.rank} leaves out {which} ({reason})"
        _say(text)
        self.note(text, level="warning")

    def _give_up(self, error: Exception) -> None:
        # A training run is worth more than its measurement: say it once, and train on. The
        # missing `end` event makes the sample incomplete, which measure reports as such.
        self._descriptor = None
        _say(f"events of rank {self.place.rank} stopped: {_words_of(error)}")


def _words_of(error: BaseException) -> str:
    """Return what an error says, whatever its class makes of that."""
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno)
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - some errors cannot even be shown
        return "(it cannot be shown)"


def _say(text: str) -> None:
    try:
        print(f"paceline: {text}", file=sys.stderr)
    except (OSError, ValueError, AttributeError):
        return  # there is nobody to hear it
