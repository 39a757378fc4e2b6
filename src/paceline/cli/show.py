"""Printing: results on stdout, everything else on stderr."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any, TextIO

from paceline.errors import StorageError
from paceline.model.command import Secret
from paceline.supervisor.job import DEFAULT_GRACE_S


class ReaderGone(Exception):
    """Nobody reads our output any more (`paceline logs -f | head`): that is no fault."""


def ready_streams() -> None:
    """Make sure that no letter is a fault, whatever the terminal can show."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def out(text: str) -> None:
    """Print a result; a reader who has had enough of it is left alone."""
    with contextlib.suppress(ReaderGone):
        out_raw(text if text.endswith("\n") else f"{text}\n")


def out_raw(text: str) -> None:
    """Print a piece of somebody else's output as it came; ReaderGone if nobody wants it."""
    try:
        _give(sys.stdout, text)
    except OSError as error:
        reason = error.strerror or str(error)
        raise StorageError(f"the output cannot be written: {reason}") from error


def say(text: str) -> None:
    """Print what is not a result: progress, notes, hints."""
    say_raw(f"{text}\n")


def say_raw(text: str) -> None:
    """Print a piece of somebody else's output where it is not the result."""
    # Where stderr itself is broken, nobody is left who could be told.
    with contextlib.suppress(OSError, ReaderGone):
        _give(sys.stderr, text)


def say_stopping() -> None:
    """Say that Ctrl-C was heard, since ranks are given some time to end in order."""
    say(f"stopping …; this takes up to {DEFAULT_GRACE_S:g} s")


def _give(stream: TextIO | None, text: str) -> None:
    if stream is None:  # closed by whoever started us, as in `paceline ls >&-`
        return
    try:
        stream.write(text)
        stream.flush()
    except BrokenPipeError as error:
        let_go(stream)
        raise ReaderGone from error
    except OSError:
        let_go(stream)
        raise


def let_go(stream: TextIO | None) -> None:
    """Send what else is written, and what is still in the buffer, to nowhere."""
    if stream is None:
        return
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
        stream.flush()


class Relay:
    """Passes on the output of a run, which goes on whatever becomes of our own."""

    def __init__(self, give: Callable[[str], None]) -> None:
        self._give = give
        self._trouble: StorageError | None = None

    def __call__(self, text: str) -> None:
        """Pass on a piece."""
        try:
            self._give(text)
        except ReaderGone:
            pass
        except StorageError as error:
            self._trouble = error

    def settle(self) -> None:
        """Raise what kept a piece from being passed on, now that the run has ended."""
        if self._trouble is not None:
            raise self._trouble


def out_json(value: object) -> None:
    """Print facts as JSON."""
    out(json.dumps(plain(value), indent=2))


def plain(value: object) -> Any:
    """Return nouns as JSON data."""
    if value is None or (
        isinstance(value, (str, int, float, bool)) and not isinstance(value, Enum)
    ):
        return value
    if isinstance(value, Enum):
        return value.value
    # A secret says itself that it is one, whatever kind of class it is.
    if dataclasses.is_dataclass(value) and not isinstance(value, (type, Secret)):
        pairs = ((item.name, getattr(value, item.name)) for item in dataclasses.fields(value))
        return {name: plain(item) for name, item in pairs}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return str(value)


def duration(seconds: float | None) -> str:
    """Return a duration for people: `7 s`, `3 min 20 s`, `2 h 05 min`."""
    if seconds is None:
        return ""
    whole = round(seconds)
    minutes, second = divmod(whole, 60)
    hours, minute = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minute:02d} min"
    if minutes:
        return f"{minutes} min {second:02d} s"
    return f"{whole} s" if seconds >= 10 else f"{seconds:.1f} s"  # noqa: PLR2004 - two digits


def age(then: float, now: float) -> str:
    """Return how long ago something was."""
    return f"{duration(max(0.0, now - then))} ago"


def columns(rows: Sequence[Sequence[str]]) -> str:
    """Return rows as aligned columns."""
    if not rows:
        return ""
    widths = [max(len(row[index]) for row in rows) for index in range(len(rows[0]))]
    lines = (
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )
    return "\n".join(lines)
