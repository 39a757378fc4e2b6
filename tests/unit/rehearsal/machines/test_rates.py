"""Rates of links, as people write them."""

from __future__ import annotations

import pytest

from paceline.errors import UsageError
from paceline.rehearsal.machines.rates import read_rate_mbit


@pytest.mark.parametrize(
    ("text", "mbit"),
    [("1gbit", 1000.0), ("50mbit", 50.0), ("2.5Gbit/s", 2500.0), ("300 kbit", 0.3)],
)
def test_rates(text: str, mbit: float) -> None:
    """A number and a unit."""
    assert read_rate_mbit(text) == mbit


@pytest.mark.parametrize("text", ["", "fast", "10", "0mbit", "-1mbit", "9999gbit", "1gbit; reboot"])
def test_what_is_no_rate(text: str) -> None:
    """Anything else is refused before a link is touched."""
    with pytest.raises(UsageError):
        read_rate_mbit(text)
