"""Means of what the steps of an epoch told."""

from __future__ import annotations

from collections.abc import Mapping


class Averages:
    """Adds figures up, weighted by the images behind them."""

    def __init__(self) -> None:
        self._sums: dict[str, float] = {}
        self._weight = 0

    def add(self, metrics: Mapping[str, float], weight: int) -> None:
        """Take in the figures of one step."""
        self._weight += weight
        for name, value in metrics.items():
            self._sums[name] = self._sums.get(name, 0.0) + value * weight

    def means(self) -> dict[str, float]:
        """Return the means; nothing where nothing was added."""
        return {name: total / self._weight for name, total in self._sums.items()}
