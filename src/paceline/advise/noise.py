"""Noise between launches: what is usual, corrected by what was seen of the machines at hand."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from paceline.advise.intervals import CONFIDENCE

# How many observations what is usual counts for; few, because machines differ.
_USUAL_COUNTS = 2


@dataclass(frozen=True)
class Noise:
    """Squared deviations on the log scale, within repeats of the same thing, and their number."""

    squares: float = 0.0
    freedom: int = 0


def noise_of(repeats: Iterable[Sequence[float]]) -> Noise:
    """Return the noise in groups of figures, each of which repeats one and the same thing."""
    squares, freedom = 0.0, 0
    for figures in repeats:
        logs = [math.log(figure) for figure in figures]
        centre = fmean(logs) if logs else 0.0
        squares += math.fsum((value - centre) ** 2 for value in logs)
        freedom += max(0, len(logs) - 1)
    return Noise(squares, freedom)


def corrected(usual: float, noise: Noise) -> float:
    """Return a half width that is usual, corrected by the noise that was seen."""
    if not noise.freedom:
        return usual
    from scipy.special import stdtrit  # noqa: PLC0415 - half a second that --help must not pay

    usual_deviation = usual / float(stdtrit(math.inf, (1 + CONFIDENCE) / 2))
    total = _USUAL_COUNTS + noise.freedom
    variance = (_USUAL_COUNTS * usual_deviation**2 + noise.squares) / total
    # Both ends agree: without noise seen, this would be what is usual.
    ends = (float(stdtrit(count, (1 + CONFIDENCE) / 2)) for count in (total, _USUAL_COUNTS))
    return usual * math.sqrt(variance) / usual_deviation * next(ends) / next(ends)
