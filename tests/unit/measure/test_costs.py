"""What an epoch takes and costs, and the configurations that nothing beats."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.measure.costs import cost_per_epoch_usd, expected_epoch_s, pareto_front
from paceline.model.plan import Configuration
from paceline.model.summary import RankSample, Sample

numbers = st.integers(0, 6).map(float)


def sample(nodes: int = 2, *, of: int | None = 100, epoch_s: float | None = None) -> Sample:
    """Return a sample whose iterations take half a second; an hour costs 3.6 USD per host."""
    rank = RankSample(0, "", iteration_s=(0.5, 0.5), iterations_per_epoch=of)
    return Sample(
        "s", "r", Configuration(nodes, 1), 1, 9.0, (rank,), epoch_s=epoch_s, usd_per_host_hour=3.6
    )


def test_an_epoch_is_measured_or_put_together() -> None:
    """A whole epoch counts first; else the mean iteration times their number."""
    assert expected_epoch_s(sample(epoch_s=60.0)) == 60.0
    assert expected_epoch_s(sample()) == 50.0
    assert expected_epoch_s(sample(of=None)) is None


def test_all_hosts_of_a_configuration_cost() -> None:
    """Two hosts for 50 s at 3.6 USD an hour are a tenth of a dollar."""
    assert cost_per_epoch_usd(sample()) == pytest.approx(0.1)
    assert cost_per_epoch_usd(sample(of=None)) is None


def test_what_is_beaten_in_both_is_not_on_the_front() -> None:
    """Quick and dear, slow and cheap stay; slow and dear does not."""
    points = [("slow and dear", 9.0, 9.0), ("cheap", 8.0, 1.0), ("quick", 1.0, 8.0)]
    assert pareto_front(points) == ("quick", "cheap")


@given(st.lists(st.tuples(numbers, numbers), min_size=1, max_size=12))
def test_the_front_is_who_nobody_beats(pairs: list[tuple[float, float]]) -> None:
    """Nobody on it is beaten, and everybody else is beaten by somebody on it."""
    points = [(index, *pair) for index, pair in enumerate(pairs)]
    front = set(pareto_front(points))
    assert front

    def beats(one: tuple[float, float], other: tuple[float, float]) -> bool:
        return one[0] <= other[0] and one[1] <= other[1] and one != other

    for index, pair in enumerate(pairs):
        beaten = any(beats(pairs[other], pair) for other in front)
        assert beaten != (index in front)
