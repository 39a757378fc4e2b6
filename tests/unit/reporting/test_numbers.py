"""How numbers are written: digits by uncertainty, missing as a dash."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.model.summary import Estimate
from paceline.reporting.numbers import (
    MILLISECONDS,
    MISSING,
    SECONDS,
    common_decimals,
    percent,
    plain,
    plus_minus,
    time_unit,
    times,
)


def _estimate(mean: float, half: float | None) -> Estimate:
    if half is None:
        return Estimate(1, mean, mean)
    return Estimate(3, mean, mean, half / 2.5, mean - half, mean + half)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        (float("nan"), "-"),
        (0.0, "0"),
        (112.04, "112.0"),
        (0.26642, "0.2664"),
        (12345.6, "12346"),
        (-3.14159, "-3.142"),
    ],
)
def test_plain_numbers(value: float | None, text: str) -> None:
    """Four digits for what is known, a dash for what is not."""
    assert plain(value) == text


@pytest.mark.parametrize(
    ("mean", "half", "text"),
    [
        (112.04, 2.31, "112.0 ± 2.3"),
        (112.04, 23.1, "112 ± 23"),
        (112.04, None, "112.0"),
        (0.2664, 0.0021, "0.2664 ± 0.0021"),
        (60.0, 0.0, "60.00 ± 0.00"),
        (60.0, 85.3, "60 ± 85"),
    ],
)
def test_uncertainty_decides_the_digits(mean: float, half: float | None, text: str) -> None:
    """Two digits of the interval, and as many of the value."""
    assert str(plus_minus(_estimate(mean, half))) == text


def test_missing_estimates_are_dashes() -> None:
    """No estimate is no zero, whatever its form."""
    assert [str(one(None)) for one in (plus_minus, times, percent)] == [MISSING] * 3


def test_ratios_have_the_same_decimals_everywhere() -> None:
    """Speedups have two decimals, shares none, with their interval or without."""
    assert str(times(Estimate(3, 1.8634, 1.86, 0.01, 1.7921, 1.9312))) == "1.86 (1.79-1.93)"
    assert str(percent(Estimate(3, 0.9317, 0.93, 0.01, 0.8961, 0.9656))) == "93% (90-97)"
    assert str(times(Estimate(1, 1.8634, 1.86))) == "1.86"


def test_a_column_has_one_number_of_decimals() -> None:
    """What suits most rows is taken for all."""
    rows = [_estimate(57.6, 0.98), _estimate(111.2, 1.9), _estimate(350.9, 11.3), None]
    decimals = common_decimals(rows)
    assert [plus_minus(row, decimals=decimals).value for row in rows] == [
        "57.6",
        "111.2",
        "350.9",
        MISSING,
    ]
    assert common_decimals([]) == 0


def test_times_below_a_second_are_in_milliseconds() -> None:
    """A column of times has one unit, that of its largest."""
    assert time_unit([0.2, 0.9]) == MILLISECONDS
    assert time_unit([0.2, 1.4]) == SECONDS


@settings(deadline=None)
@given(
    st.floats(min_value=1e-6, max_value=1e9),
    st.none() | st.floats(min_value=0, max_value=1e9),
)
def test_shown_values_are_near_the_truth(mean: float, half: float | None) -> None:
    """Whatever the sizes, what is shown is the value within half of its uncertainty, or 0.1%."""
    shown = float(plus_minus(_estimate(mean, half)).value)
    assert abs(shown - mean) <= max(0.001 * mean, (half or 0) / 2, 1e-6)
