"""Figures with their uncertainty: means of few samples, and ratios of such means.

A mean has Student's t interval. A ratio is never a bare division: its relative variances add
up on the log scale (the delta method), with the degrees of freedom of Welch and Satterthwaite,
so that three noisy samples on one side are not taken for more than they are.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence

from paceline.model.summary import Estimate

CONFIDENCE = 0.95
_OUTLIER_RISK = 0.01
_FEWEST_FOR_OUTLIER = 4


def estimate(values: Iterable[float]) -> Estimate | None:
    """Return n, mean, median, standard deviation and 95% interval; None where there is nothing."""
    numbers = [float(value) for value in values]
    if not numbers:
        return None
    n = len(numbers)
    mean = statistics.fmean(numbers)
    median = statistics.median(numbers)
    if n == 1:
        return Estimate(n=1, mean=mean, median=median)
    spread = statistics.stdev(numbers)
    half = t_quantile(n - 1) * spread / math.sqrt(n)
    return Estimate(n, mean, median, spread, mean - half, mean + half)


def ratio(numerator: Estimate, denominator: Estimate) -> Estimate | None:
    """Return numerator / denominator with its interval; None unless both means are positive.

    n is the smaller of the two. The interval is symmetric on the log scale, and None where
    either side has a single sample. The spread is that of one new sample of the numerator over
    one new sample of the denominator. Sides without any spread make an interval without width.
    """
    if numerator.mean <= 0 or denominator.mean <= 0:
        return None
    n = min(numerator.n, denominator.n)
    mean = numerator.mean / denominator.mean
    median = numerator.median / denominator.median if denominator.median > 0 else mean
    if numerator.spread is None or denominator.spread is None:
        return Estimate(n=n, mean=mean, median=median)
    relative = (numerator.spread / numerator.mean, denominator.spread / denominator.mean)
    terms = (relative[0] ** 2 / numerator.n, relative[1] ** 2 / denominator.n)
    factor = _log_factor(terms, (numerator.n - 1, denominator.n - 1))
    spread = mean * math.hypot(*relative)
    return Estimate(n, mean, median, spread, mean / factor, mean * factor)


def _log_factor(terms: tuple[float, float], freedoms: tuple[int, int]) -> float:
    """Return the factor by which the interval of a ratio reaches above and below it."""
    variance = sum(terms)
    # Shares instead of squares of the terms: those of a very quiet machine would underflow.
    if variance <= 0:
        return 1.0
    share = terms[0] / variance
    freedom = 1 / (share**2 / freedoms[0] + (1 - share) ** 2 / freedoms[1])
    exponent = t_quantile(freedom) * math.sqrt(variance)
    # Beyond this the data say nothing at all; the bound keeps the arithmetic finite.
    return math.exp(min(exponent, 50.0))


def of_a_new_run(value: Estimate) -> tuple[float, float] | None:
    """Return where one more run will lie, with 95%: None below two samples.

    A new launch brings its own luck with it, such as a slow host. So this follows from the spread
    between runs and does not shrink to nothing with many of them, as the interval of a mean does.
    """
    if value.spread is None:
        return None
    half = t_quantile(value.n - 1) * value.spread * math.sqrt(1 + 1 / value.n)
    return value.mean - half, value.mean + half


def karp_flatt(speedup: Estimate, growth: float) -> Estimate | None:
    """Return the serial fraction that a speedup on `growth` times the processes amounts to.

    It falls as the speedup rises, so the ends of the interval change places. Below zero the
    speedup was more than linear. None where there is no growth.
    """
    if growth <= 1 or speedup.mean <= 0 or speedup.median <= 0:
        return None

    def fraction(times: float) -> float:
        return (1 / times - 1 / growth) / (1 - 1 / growth)

    slope = 1 / (speedup.mean**2 * (1 - 1 / growth))
    return Estimate(
        n=speedup.n,
        mean=fraction(speedup.mean),
        median=fraction(speedup.median),
        spread=None if speedup.spread is None else speedup.spread * slope,
        low=None if speedup.high is None else fraction(speedup.high),
        high=None if speedup.low is None else fraction(speedup.low),
    )


def outlier(values: Sequence[float]) -> int | None:
    """Return the position of the value that does not fit to the others; None if all do.

    This is Grubbs' test at 1%: in a hundred sets of equal runs, one names a run wrongly.
    """
    n = len(values)
    if n < _FEWEST_FOR_OUTLIER:
        return None
    mean, spread = statistics.fmean(values), statistics.stdev(values)
    if spread <= 0:
        return None
    position = max(range(n), key=lambda index: abs(values[index] - mean))
    t = t_quantile(n - 2, confidence=1 - _OUTLIER_RISK / n)
    critical = (n - 1) / math.sqrt(n) * math.sqrt(t**2 / (n - 2 + t**2))
    return position if abs(values[position] - mean) / spread > critical else None


def scaled(value: Estimate, factor: float) -> Estimate:
    """Return the estimate multiplied by an exact, positive number."""
    return Estimate(
        n=value.n,
        mean=value.mean * factor,
        median=value.median * factor,
        spread=None if value.spread is None else value.spread * factor,
        low=None if value.low is None else value.low * factor,
        high=None if value.high is None else value.high * factor,
    )


def contains(value: Estimate, number: float) -> bool | None:
    """Whether the interval includes the number; None where there is no interval."""
    if value.low is None or value.high is None:
        return None
    return value.low <= number <= value.high


def t_quantile(degrees_of_freedom: float, confidence: float = CONFIDENCE) -> float:
    """Return how many standard errors a two-sided interval reaches to either side."""
    from scipy.special import stdtrit  # noqa: PLC0415 - half a second that --help must not pay

    return float(stdtrit(degrees_of_freedom, (1 + confidence) / 2))
