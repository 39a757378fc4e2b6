"""Stragglers: iterations that some rank held up. They are a state of a launch, and persist.

How much they add is learned from launches of the same kind. Burstable types that communicate
straggled in every published launch, so they are expected to, whatever a short probe shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from paceline.advise.course import Course
from paceline.advise.credits import burstable
from paceline.advise.nouns import Regime, Target
from paceline.advise.priors import Priors


def prone(target: Target) -> bool:
    """Whether a target has to be expected to straggle: burstable hosts that wait for each other."""
    return target.nodes > 1 and burstable(target.instance_type)


def regime_of(target: Target, courses: Sequence[Course]) -> Regime:
    """Return the regime that a target has to be expected in, after launches of its kind."""
    alike = _alike(target, courses)
    straggling = sum(course.regime == "straggling" for course in alike)
    return "straggling" if prone(target) or 2 * straggling > len(alike) else "steady"


def excess_share(target: Target, courses: Sequence[Course], priors: Priors) -> float:
    """Return what stragglers will add to an iteration, as a share of it.

    Between hosts it is as much more as there is more traffic.
    """
    wanted = _traffic(target)
    found = [
        course.excess_s / course.steady_s * wanted / _traffic(course.launch.target)
        for course in _alike(target, courses)
    ]
    if found:
        return fmean(found)
    return priors.straggler_share * wanted if prone(target) else 0.0


def _alike(target: Target, courses: Sequence[Course]) -> list[Course]:
    """Return the launches that straggle for the same reasons."""
    several, bursts = target.nodes > 1, burstable(target.instance_type)
    own = [(course, course.launch.target) for course in courses]
    return [
        course
        for course, source in own
        if (source.nodes > 1, burstable(source.instance_type)) == (several, bursts)
    ]


def _traffic(target: Target) -> float:
    """Return how often each host sends the message in one all-reduce; 1 for a single host."""
    return 2.0 * (target.nodes - 1) / target.nodes if target.nodes > 1 else 1.0
