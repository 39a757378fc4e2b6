"""Durations as people write them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.model.spec.durations import parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        (90, 90.0),
        (0.5, 0.5),
        ("90", 90.0),
        ("90s", 90.0),
        ("10m", 600.0),
        ("4h", 14_400.0),
        ("1h30m", 5_400.0),
        (" 1 h 30 m ", 5_400.0),
        ("2d", 172_800.0),
        ("1.5H", 5_400.0),
        ("1m0.5s", 60.5),
    ],
)
def test_reads_the_usual_spellings(text: object, seconds: float) -> None:
    """Bare numbers are seconds; units may be combined from large to small."""
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "text",
    ["", " ", "soon", "1h30", "30m1h", "-5", "5 minutes", "1e3", "h", True, None, [1], "٣", "1 2"],
)
def test_refuses_what_is_no_duration(text: object) -> None:
    """Words, ambiguous and wrongly ordered amounts are refused with an example."""
    with pytest.raises(ValueError, match="such as 90, 90s, 10m or 1h30m"):
        parse_duration(text)


@pytest.mark.parametrize("amount", [0, "0s", -1, math.inf, math.nan, 10**400, "9" * 400])
def test_refuses_amounts_that_are_no_time(amount: object) -> None:
    """Nothing, less than nothing and for ever are no durations."""
    with pytest.raises(ValueError, match="above zero"):
        parse_duration(amount)


@settings(deadline=None)
@given(st.integers(0, 99), st.integers(0, 999), st.integers(0, 999), st.integers(0, 999))
def test_a_sum_of_units_is_the_sum_of_its_parts(
    days: int, hours: int, minutes: int, seconds: int
) -> None:
    """Whatever the parts are, they add up."""
    total = ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    text = f"{days}d{hours}h{minutes}m{seconds}s"
    if total:
        assert parse_duration(text) == total
    else:
        with pytest.raises(ValueError, match="above zero"):
            parse_duration(text)


@settings(deadline=None)
@given(st.one_of(st.text(), st.integers(), st.floats(), st.booleans(), st.none()))
def test_anything_is_either_a_positive_time_or_a_value_error(value: object) -> None:
    """No input makes it fail in any other way."""
    try:
        seconds = parse_duration(value)
    except ValueError:
        return
    assert 0 < seconds < math.inf
