"""CPU credits: when a burstable type slows down, and by how much."""

from __future__ import annotations

import pytest

from paceline.advise.credits import burstable, credits_of


def test_a_small_t2_falls_to_a_fifth_after_37_minutes() -> None:
    """30 credits at full load, a fifth of which is earned meanwhile."""
    found = credits_of("t2.small", 1.0)
    assert found is not None
    assert found.lasts_s / 60 == pytest.approx(37.5)
    assert found.slower == 5.0
    assert found.stretched(30 * 60) == 30 * 60
    assert found.stretched(40 * 60) == pytest.approx((37.5 + 2.5 * 5) * 60)


def test_a_light_load_goes_on_for_ever() -> None:
    """One busy vCPU of eight is less than what a t2.2xlarge earns."""
    assert credits_of("t2.2xlarge", 1.0) is None
    assert credits_of("t2.medium", 0.4) is None


def test_no_more_than_all_vcpus_are_busy() -> None:
    """A t2.medium has two, however many processes there are."""
    assert credits_of("t2.medium", 64.0) == credits_of("t2.medium", 2.0)


@pytest.mark.parametrize("name", ["m5.large", "t3.small", "t2.gigantic", "t2", ""])
def test_other_types_keep_their_pace(name: str) -> None:
    """T3 is billed instead; what is not known is not slowed down."""
    assert credits_of(name, 2.0) is None


def test_burstable_types_are_known() -> None:
    """Billed or not, they share their cores."""
    assert burstable("t3.small")
    assert not burstable("m5.large")
    assert not burstable("trn1.2xlarge")
