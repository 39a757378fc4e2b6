"""Where the time of an iteration goes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.measure.parts import parts_of, time_parts
from paceline.model.plan import Configuration
from paceline.model.summary import RankSample, Sample

share = st.floats(0, 0.5)


def sample(*ranks: RankSample) -> Sample:
    """Return a sample with these ranks."""
    return Sample("s", "r", Configuration(1, max(1, len(ranks))), 1, 9.0, ranks=ranks)


def rank(number: int, waited: float | None, given_s: float | None) -> RankSample:
    """Return a rank with ten iterations of a second."""
    return RankSample(number, "", iteration_s=(1.0,) * 10, wait_s=waited, data_s=given_s)


@given(share, share)
def test_the_parts_add_up_to_the_iteration(waited: float, given_s: float) -> None:
    """Compute is what is left, so that nothing is lost and nothing counted twice."""
    found = parts_of(sample(rank(0, waited * 10, given_s * 10), rank(1, waited * 10, given_s * 10)))
    assert found is not None
    assert found.total_s == pytest.approx(1.0)
    assert found.wait_s == pytest.approx(waited)
    assert found.input_s == pytest.approx(given_s)


def test_a_lone_rank_waits_for_nobody() -> None:
    """Without others there is no communication, although nobody reported a zero."""
    found = parts_of(sample(rank(0, None, 1.0)))
    assert found is not None
    assert (found.wait_s, found.input_s) == (0.0, 0.1)


@pytest.mark.parametrize(
    "ranks",
    [(), (rank(0, 1.0, None),), (rank(0, 1.0, 1.0), rank(1, None, 1.0))],
    ids=["no ranks", "no input", "one rank is silent"],
)
def test_what_was_not_reported_is_missing(ranks: tuple[RankSample, ...]) -> None:
    """A part that nobody measured is not guessed to be zero."""
    assert parts_of(sample(*ranks)) is None
    assert time_parts([sample(*ranks)]) is None


def test_the_parts_of_a_configuration_have_intervals() -> None:
    """Each part is a figure over samples, like every other."""
    made = time_parts([sample(rank(0, None, 1.0)), sample(rank(0, None, 2.0))])
    assert made is not None
    assert made.input_s.mean == pytest.approx(0.15)
    assert made.input_s.n == 2
    assert made.input_s.low is not None
