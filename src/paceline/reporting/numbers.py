"""Numbers as people read them: as many digits as the uncertainty allows, missing as a dash."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable
from dataclasses import dataclass

from paceline.model.summary import Estimate

MISSING = "-"
_SIGNIFICANT = 4
_MOST_DECIMALS = 6


@dataclass(frozen=True)
class Figure:
    """A value and its uncertainty, ready to be shown together or apart."""

    value: str
    uncertainty: str = ""

    def __str__(self) -> str:
        return f"{self.value} {self.uncertainty}".rstrip()


@dataclass(frozen=True)
class Unit:
    """A unit of time and how many of it make a second."""

    name: str
    per_second: float


SECONDS = Unit("s", 1.0)
MILLISECONDS = Unit("ms", 1000.0)


def time_unit(seconds: Iterable[float]) -> Unit:
    """Return milliseconds where every time is below a second, so that a column has one unit."""
    return MILLISECONDS if max(seconds, default=0.0) < 1.0 else SECONDS


def plain(value: float | None) -> str:
    """Return a number with four significant digits, never in powers of ten for usual sizes."""
    if value is None or not math.isfinite(value):
        return MISSING
    if value == 0:
        return "0"
    return _fixed(value, _SIGNIFICANT - 1 - _magnitude(value))


def plus_minus(
    estimate: Estimate | None, factor: float = 1.0, decimals: int | None = None
) -> Figure:
    """Return `112.0` and `± 2.3`: two digits of uncertainty decide those of the value."""
    if estimate is None:
        return Figure(MISSING)
    digits = decimals_for(estimate, factor) if decimals is None else decimals
    value = _fixed(estimate.mean * factor, digits)
    if estimate.low is None or estimate.high is None:
        return Figure(value)
    return Figure(value, f"± {_fixed((estimate.high - estimate.low) / 2 * factor, digits)}")


def times(estimate: Estimate | None) -> Figure:
    """Return a ratio, whose interval is not symmetric: `1.86` and `(1.79-1.93)`."""
    return _between(estimate, 1.0, 2, "")


def percent(estimate: Estimate | None) -> Figure:
    """Return a share of one: `93%` and `(90-97)`."""
    return _between(estimate, 100.0, 0, "%")


def _between(estimate: Estimate | None, factor: float, decimals: int, suffix: str) -> Figure:
    if estimate is None:
        return Figure(MISSING)
    value = f"{_fixed(estimate.mean * factor, decimals)}{suffix}"
    if estimate.low is None or estimate.high is None:
        return Figure(value)
    low, high = (_fixed(end * factor, decimals) for end in (estimate.low, estimate.high))
    return Figure(value, f"({low}-{high})")


def decimals_for(estimate: Estimate, factor: float = 1.0) -> int:
    """Return the decimals that show two digits of the uncertainty, or four of the value."""
    value = estimate.mean * factor
    finest = _SIGNIFICANT - 1 - _magnitude(value)
    if estimate.low is None or estimate.high is None:
        return finest
    half = (estimate.high - estimate.low) / 2 * factor
    # An uncertainty far below the value's fourth digit adds nothing but noise to a table.
    return finest if half <= 0 else min(1 - _magnitude(half), finest + 1)


def common_decimals(estimates: Iterable[Estimate | None], factor: float = 1.0) -> int:
    """Return the decimals for a whole column: those that suit most of its figures."""
    return statistics.median_high(
        [decimals_for(one, factor) for one in estimates if one is not None] or [0]
    )


def _magnitude(value: float) -> int:
    return math.floor(math.log10(abs(value))) if value else 0


def _fixed(value: float, decimals: int) -> str:
    return f"{value:.{min(max(decimals, 0), _MOST_DECIMALS)}f}"
