"""Printing: results on stdout, everything else on stderr."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any


def out(text: str) -> None:
    """Print a result."""
    sys.stdout.write(text if text.endswith("\n") else f"{text}\n")


def say(text: str) -> None:
    """Print what is not a result: progress, notes, hints."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def out_raw(text: str) -> None:
    """Print a piece of somebody else's output as it came."""
    sys.stdout.write(text)
    sys.stdout.flush()


def say_raw(text: str) -> None:
    """Print a piece of somebody else's output where it is not the result."""
    sys.stderr.write(text)
    sys.stderr.flush()


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
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
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
