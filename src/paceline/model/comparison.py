"""Two studies side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from paceline.model.plan import Configuration
from paceline.model.summary import Estimate

FASTER, SLOWER, TIE, UNKNOWN = "faster", "slower", "tie", "unknown"


@dataclass(frozen=True)
class ComparedConfiguration:
    """One configuration that both studies have measured.

    `basis` is the figure that is compared; `first` and `second` are it, and `ratio` is how many
    times as fast as the first study the second is. `verdict` is `faster`, `slower`, `tie`, or
    `unknown` where there is no interval.
    """

    configuration: Configuration
    basis: str | None
    first: Estimate | None
    second: Estimate | None
    ratio: Estimate | None
    verdict: str


@dataclass(frozen=True)
class Comparison:
    """What two studies have in common, and what is different about their surroundings.

    `changed` holds what differs in their provenance, by its path: the first's and the second's.
    """

    first: str
    second: str
    unit: str
    headline: str
    configurations: tuple[ComparedConfiguration, ...]
    only_first: tuple[Configuration, ...] = ()
    only_second: tuple[Configuration, ...] = ()
    changed: Mapping[str, tuple[object, object]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
