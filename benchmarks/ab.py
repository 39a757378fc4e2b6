"""What the benchmarks share: two ways of the same thing, measured in turns, and their ratio."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable

from paceline.measure.statistics import estimate, ratio
from paceline.model.summary import Estimate


def in_turns(
    ours: Callable[[], float], theirs: Callable[[], float], rounds: int
) -> tuple[Estimate, Estimate]:
    """Measure both in turns, so that a drift of the machine meets both; the first round is lost."""
    ours(), theirs()
    pairs = [(ours(), theirs()) for _ in range(rounds)]
    first = estimate(a for a, _ in pairs)
    second = estimate(b for _, b in pairs)
    assert first is not None
    assert second is not None
    return first, second


def show(name: str, value: Estimate, unit: str, scale: float = 1.0) -> None:
    """Print one figure with its n and 95% interval."""
    low = "" if value.low is None else f"  [{value.low * scale:.2f} to {value.high * scale:.2f}]"  # type: ignore[operator]
    print(f"{name:<44} {value.mean * scale:9.2f} {unit}  n={value.n}{low}")


def show_ratio(name: str, numerator: Estimate, denominator: Estimate) -> None:
    """Print a ratio with its propagated uncertainty."""
    found = ratio(numerator, denominator)
    assert found is not None
    show(name, found, "x")


def conditions() -> None:
    """Print what the figures depend on."""
    print(
        f"Python {platform.python_version()}, {platform.machine()}, "
        f"{len(os.sched_getaffinity(0))} cores, load {os.getloadavg()[0]:.1f}, {sys.executable}"
    )
