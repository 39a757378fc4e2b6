"""Means and ratios of few samples, checked against scipy and worked examples."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.measure.statistics import (
    contains,
    estimate,
    karp_flatt,
    of_a_new_run,
    outlier,
    ratio,
    scaled,
)
from paceline.model.summary import Estimate

positive = st.floats(min_value=1e-6, max_value=1e6)
several = st.lists(positive, min_size=2, max_size=8)


def _estimate(values: list[float]) -> Estimate:
    made = estimate(values)
    assert made is not None
    return made


def _interval(value: Estimate | None) -> tuple[float, float]:
    assert value is not None
    assert value.low is not None
    assert value.high is not None
    return value.low, value.high


def test_nothing_measured_is_none() -> None:
    """No values make no estimate, rather than a zero."""
    assert estimate([]) is None


def test_one_value_has_no_interval() -> None:
    """A single sample has a mean, but neither spread nor interval."""
    assert estimate([3.5]) == Estimate(n=1, mean=3.5, median=3.5)


def test_interval_of_a_textbook_example() -> None:
    """Five values with mean 3 and standard deviation 1.5811 reach 1.9632 to either side."""
    low, high = _interval(estimate([1, 2, 3, 4, 5]))
    assert low == pytest.approx(3 - 1.96324, abs=1e-5)
    assert high == pytest.approx(3 + 1.96324, abs=1e-5)


@settings(deadline=None)
@given(several)
def test_interval_is_students(values: list[float]) -> None:
    """The interval is the one that scipy computes from the same values."""
    from scipy import stats

    made = _estimate(values)
    if made.spread is None or made.spread < 1e-9 * made.mean:
        return
    error = made.spread / math.sqrt(made.n)
    expected = stats.t.interval(0.95, made.n - 1, loc=made.mean, scale=error)
    assert _interval(made) == pytest.approx(expected, rel=1e-9)


def test_equal_values_have_an_interval_without_width() -> None:
    """Samples without any spread are no error, and their ratio is none either."""
    made = _estimate([2.0, 2.0, 2.0])
    assert (made.spread, made.low, made.high) == (0.0, 2.0, 2.0)
    assert _interval(ratio(made, _estimate([4.0, 4.0]))) == (0.5, 0.5)


def test_ratio_agrees_with_welch_on_logarithms() -> None:
    """For small spreads the interval is that of Welch's test on the logarithms."""
    from scipy import stats

    fast, slow = [111.0, 113.2, 112.1, 110.9], [60.2, 59.7, 60.9]
    welch = stats.ttest_ind(
        [math.log(x) for x in fast], [math.log(x) for x in slow], equal_var=False
    ).confidence_interval(0.95)
    low, high = _interval(ratio(_estimate(fast), _estimate(slow)))
    assert low == pytest.approx(math.exp(welch.low), rel=2e-3)
    assert high == pytest.approx(math.exp(welch.high), rel=2e-3)


def test_ratio_intervals_cover_the_truth_as_often_as_they_say() -> None:
    """Of 2000 made-up pairs of three samples each, about 95% of the intervals hold the ratio."""
    dice = random.Random(7)  # noqa: S311 - noise, not a secret
    hits = 0
    for _ in range(2000):
        upper = _estimate([dice.gauss(110, 4) for _ in range(3)])
        lower = _estimate([dice.gauss(60, 1) for _ in range(3)])
        made = ratio(upper, lower)
        assert made is not None
        hits += bool(contains(made, 110 / 60))
    assert 0.93 <= hits / 2000 <= 0.98


def test_ratio_with_a_single_sample_has_no_interval() -> None:
    """One sample on either side leaves the ratio without an interval, and n is that one."""
    made = ratio(_estimate([2.0, 2.2]), _estimate([1.0]))
    assert made is not None
    assert (made.n, made.low, made.high, made.spread) == (1, None, None, None)
    assert made.mean == pytest.approx(2.1)


@pytest.mark.parametrize(("upper", "lower"), [(0.0, 1.0), (1.0, 0.0), (-1.0, 1.0)])
def test_ratio_needs_positive_means(upper: float, lower: float) -> None:
    """A zero on either side makes no ratio instead of a division error."""
    assert ratio(Estimate(1, upper, upper), Estimate(1, lower, lower)) is None


@settings(deadline=None)
@given(several, several)
def test_ratio_is_symmetric(one: list[float], other: list[float]) -> None:
    """a/b and b/a say the same: mean and interval are each other's inverse."""
    there, back = ratio(_estimate(one), _estimate(other)), ratio(_estimate(other), _estimate(one))
    assert there is not None
    assert back is not None
    low, high = _interval(there)
    assert low <= there.mean <= high
    assert there.mean * back.mean == pytest.approx(1)
    assert low * _interval(back)[1] == pytest.approx(1)


@settings(deadline=None)
@given(several, st.floats(min_value=1e-3, max_value=1e3))
def test_scaling_keeps_everything_in_proportion(values: list[float], factor: float) -> None:
    """An estimate times a number is the estimate of the values times that number."""
    direct = _estimate([value * factor for value in values])
    made = scaled(_estimate(values), factor)
    assert (made.mean, made.median) == pytest.approx((direct.mean, direct.median))
    assert _interval(made) == pytest.approx(_interval(direct), rel=1e-6, abs=1e-6 * direct.mean)


def test_contains_is_unknown_without_an_interval() -> None:
    """Whether a number lies within an interval that is not there, nobody can say."""
    assert contains(Estimate(1, 1.0, 1.0), 1.0) is None
    assert contains(Estimate(3, 1.0, 1.0, 0.1, 0.9, 1.1), 1.0) is True
    assert contains(Estimate(3, 1.0, 1.0, 0.1, 0.9, 1.1), 1.2) is False


@given(several)
def test_a_new_run_is_less_certain_than_the_mean(values: list[float]) -> None:
    """The interval for one more run holds that of the mean: its own luck comes on top."""
    made = _estimate(values)
    low, high = _interval(made)
    found = of_a_new_run(made)
    assert found is not None
    assert found[0] <= low <= high <= found[1]


def test_a_new_run_is_foretold_as_often_as_claimed() -> None:
    """Of many new runs of a normal machine, 95% lie where the runs before said."""
    dice = random.Random(7)  # noqa: S311 - noise, not a secret
    rounds, inside = 2000, 0
    for _ in range(rounds):
        found = of_a_new_run(_estimate([dice.gauss(10, 1) for _ in range(3)]))
        assert found is not None
        inside += found[0] <= dice.gauss(10, 1) <= found[1]
    assert 0.93 <= inside / rounds <= 0.97


def test_one_run_foretells_nothing() -> None:
    """A single sample has no spread that a new one could be expected in."""
    assert of_a_new_run(_estimate([3.0])) is None


@given(st.integers(2, 64), st.floats(0, 1))
def test_karp_flatt_finds_the_serial_fraction_of_amdahl(growth: int, serial: float) -> None:
    """A speedup made by Amdahl's law gives back its serial fraction."""
    speedup = 1 / (serial + (1 - serial) / growth)
    found = karp_flatt(Estimate(n=1, mean=speedup, median=speedup), growth)
    assert found is not None
    assert found.mean == pytest.approx(serial, abs=1e-9)
    assert found.low is None


def test_karp_flatt_turns_the_interval_around() -> None:
    """The larger the speedup, the smaller the serial part; beyond linear it is negative."""
    found = karp_flatt(Estimate(3, 3.0, 3.0, 0.1, 2.8, 4.4), 4)
    assert found is not None
    low, high = _interval(found)
    assert low < 0 < found.mean < high
    assert high == pytest.approx((1 / 2.8 - 1 / 4) / (1 - 1 / 4))


def test_karp_flatt_needs_growth() -> None:
    """Without more processes there is nothing that could be serial."""
    assert karp_flatt(Estimate(3, 1.0, 1.0), 1) is None


def test_an_outlier_is_found_where_it_stands() -> None:
    """One run far from its equal fellows is named."""
    assert outlier([10.0, 10.1, 14.0, 9.9, 10.05]) == 2


@pytest.mark.parametrize("values", [[1.0, 1.0, 9.0], [5.0] * 6, []])
def test_few_or_equal_values_have_no_outlier(values: list[float]) -> None:
    """Of three values nobody can say which is the odd one."""
    assert outlier(values) is None


def test_equal_runs_are_seldom_called_outliers() -> None:
    """The test keeps its promise of one in a hundred, for few samples too."""
    dice = random.Random(11)  # noqa: S311 - noise, not a secret
    for size in (4, 6, 10):
        named = sum(
            outlier([dice.gauss(100, 3) for _ in range(size)]) is not None for _ in range(3000)
        )
        assert named / 3000 < 0.02
