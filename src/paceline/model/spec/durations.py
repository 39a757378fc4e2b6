"""Durations as people write them: `90`, `90s`, `10m`, `4h`, `1h30m`, `2d`."""

from __future__ import annotations

import math
import re

_UNITS_S = (86_400.0, 3_600.0, 60.0, 1.0)
_NUMBER = r"(\d+(?:\.\d+)?)"
# `1h30` is refused on purpose: some would mean half an hour by it, others half a minute.
_WITH_UNITS = re.compile(
    rf"(?:{_NUMBER}\s*d)?\s*(?:{_NUMBER}\s*h)?\s*(?:{_NUMBER}\s*m)?\s*(?:{_NUMBER}\s*s)?",
    re.ASCII,
)
_BARE = re.compile(_NUMBER, re.ASCII)
DURATION_PATTERN = r"^\s*\d[\d.\sdhmsDHMS]*$"
EXAMPLES = "90, 90s, 10m or 1h30m"


def parse_duration(value: object) -> float:
    """Return a duration in seconds; a bare number is seconds. ValueError for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise ValueError(f"must be a duration such as {EXAMPLES}")  # noqa: TRY004 - pydantic's
    seconds = _from_text(value) if isinstance(value, str) else _from_number(value)
    if not math.isfinite(seconds) or seconds <= 0:
        raise ValueError(f"must be a duration above zero, such as {EXAMPLES}")
    return seconds


def _from_number(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _from_text(text: str) -> float:
    stripped = text.strip().lower()
    if _BARE.fullmatch(stripped):
        return float(stripped)
    found = _WITH_UNITS.fullmatch(stripped)
    if found is None or not stripped:
        raise ValueError(f"must be a duration such as {EXAMPLES}")
    amounts = zip(found.groups(), _UNITS_S, strict=True)
    return sum(float(amount) * unit_s for amount, unit_s in amounts if amount is not None)
