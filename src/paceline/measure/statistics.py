"""Figures with their uncertainty: means of few samples, and ratios of such means.

A mean has Student's t interval. A ratio is never a bare division: its relative variances add
up on the log scale (the delta method), with the degrees of freedom of Welch and Satterthwaite,
so that three noisy samples on one side are not taken for more than they are.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable

from paceline.model.summary import Estimate

CONFIDENCE = 0.95


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
