"""Rates of links as people write them: `1gbit`, `50mbit`, `300kbit`."""

from __future__ import annotations

import re

from paceline.errors import UsageError

_FACTORS = {"k": 0.001, "m": 1.0, "g": 1000.0}
_LEAST_MBIT, _MOST_MBIT = 0.01, 400_000.0


def read_rate_mbit(text: str) -> float:
    """Return a rate in Mbit/s."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmg])bit(?:/s|ps)?", text.strip().lower())
    rate = float(found[1]) * _FACTORS[found[2]] if found else 0.0
    if not _LEAST_MBIT <= rate <= _MOST_MBIT:
        raise UsageError(f"{text!r} is no rate of a link", hint="for example 1gbit or 50mbit")
    return rate
