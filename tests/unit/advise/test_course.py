"""Courses: what the iterations of one launch say."""

from __future__ import annotations

from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.advise.course import (
    batches_of,
    course_of,
    effective_iterations,
    epoch_s,
    items_of,
    likely_items,
    roundest,
)
from paceline.advise.nouns import EpochTimes, Launch, Target
from tests.unit.advise.conftest import first, launch

ONE = Target("m5.large", 1, 1, 32)


def test_the_warm_up_does_not_count_for_the_pace() -> None:
    """A first iteration of ten times the median changes the epoch, not the pace."""
    course = course_of(launch(ONE, [10.0, 1.5, 1.2, *[1.0] * 17], planned=100), 3200)
    assert course.steady_s == course.mean_s == 1.0
    assert course.start_s == pytest.approx(9.7)
    assert epoch_s(course) == pytest.approx(12.7 + 17 + 80)


def test_a_partial_last_batch_counts_as_a_fraction() -> None:
    """Of 100 items in batches of 32, the fourth batch is an eighth."""
    assert batches_of(100, 1, 32) == (4, 0.125)
    assert effective_iterations(100, 1, 32) == 3.125
    assert batches_of(96, 1, 32) == (3, 1.0)
    # Every rank has as many items: the 50,001st makes two of them.
    assert batches_of(50_001, 2, 25_000) == (2, 1 / 25_000)


@given(st.integers(1, 10**6), st.integers(1, 64), st.integers(1, 512))
def test_iterations_follow_from_items_and_back(items: int, ranks: int, batch: int) -> None:
    """The number of iterations that items make leads back to a range that holds them."""
    count, last = batches_of(items, ranks, batch)
    assert 0 < last <= 1
    assert (count - 1) * batch * ranks < items + ranks
    found = items_of(launch(Target("x", ranks, 1, batch), [1.0], planned=count))
    assert found is not None
    assert -(-items // ranks) * ranks in found


def test_the_size_of_the_data_set_is_the_roundest_that_fits(
    published: tuple[Launch, ...],
) -> None:
    """50,000 and 10,000 are found from the numbers of iterations alone."""
    sizes = {
        study: likely_items([item for item in published if item.study == study]) for study in "ABCD"
    }
    assert sizes == {"A": 50_000, "B": 10_000, "C": 50_000, "D": 50_000}
    assert roundest(49_984, 50_048) == 50_000
    assert roundest(7, 7) == 7


def test_no_number_of_items_fits_two_data_sets() -> None:
    """Launches on different data sets have no size in common."""
    assert likely_items([launch(ONE, [1.0], planned=10), launch(ONE, [1.0], planned=99)]) is None
    assert likely_items([Launch("S", ONE, (EpochTimes(0, None, {0: 1.0}),))]) is None


def test_stragglers_go_on_but_a_burst_does_not() -> None:
    """Single slow iterations raise the mean; four in a row came and went."""
    straggling = course_of(launch(ONE, [1.0] * 3 + [1.0, 1.0, 1.0, 2.0] * 5, planned=100), 3200)
    assert (straggling.regime, straggling.mean_s, straggling.steady_s) == ("straggling", 1.25, 1.0)
    assert straggling.excess_s == 0.25
    burst = course_of(launch(ONE, [1.0] * 10 + [2.0] * 4 + [1.0] * 6, planned=100), 3200)
    assert (burst.regime, burst.mean_s, burst.bursts) == ("steady", 1.0, 1)
    # What the burst took was taken all the same.
    assert epoch_s(burst) == pytest.approx(104.0)


def test_a_whole_epoch_speaks_for_itself() -> None:
    """Nothing is extrapolated where everything was seen; several epochs are averaged."""
    epochs = (EpochTimes(0, 2, {0: 3.0, 1: 1.0}), EpochTimes(1, 2, {0: 1.0, 1: 1.0}))
    assert epoch_s(course_of(Launch("S", ONE, epochs), 64)) == 3.0


def test_gaps_are_filled_with_the_mean() -> None:
    """An iteration whose line is missing took as long as the others."""
    times = {index: 1.0 for index in range(40) if index != 20}
    found = Launch("S", ONE, (EpochTimes(0, 100, times),))
    assert epoch_s(course_of(found, 3200)) == pytest.approx(100.0)


def test_without_the_length_of_the_epoch_there_is_no_epoch() -> None:
    """The pace is known all the same."""
    found = course_of(Launch("S", ONE, (EpochTimes(0, None, {0: 2.0, 1: 1.0}),)), None)
    assert (found.steady_s, epoch_s(found)) == (1.0, None)


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_the_shortest_probes_have_a_course(count: int) -> None:
    """Even a single iteration is an answer, if not a good one."""
    found = course_of(launch(ONE, [2.0, 1.5, 1.2, 1.0][:count], planned=50), 1600)
    assert found.steady_s > 0
    whole = epoch_s(found)
    assert whole is not None
    assert whole >= 50


def test_an_epoch_of_one_partial_batch_has_a_course() -> None:
    """Five items in a batch of 32: there is no full iteration at all."""
    found = course_of(launch(ONE, [0.4]), 5)
    assert epoch_s(found) == 0.4


def test_twenty_iterations_tell_the_epoch(published: tuple[Launch, ...]) -> None:
    """The published launches: half of the errors are below 0.5%, none is beyond 5%."""
    errors = []
    for whole in published:
        for number, epoch in enumerate(whole.epochs):
            if not epoch.whole or len(epoch.seconds) <= 20:
                continue
            items = likely_items([item for item in published if item.study == whole.study])
            found = epoch_s(course_of(first(whole, 20, number), items))
            assert found is not None
            errors.append(abs(found / sum(epoch.seconds.values()) - 1))
    assert len(errors) == 11
    assert median(errors) < 0.005
    assert max(errors) < 0.05
