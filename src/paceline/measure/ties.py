"""Which configurations cannot be told apart by what was measured."""

from __future__ import annotations

from collections.abc import Sequence

from paceline.measure.basis import common_basis, speedup_by
from paceline.measure.statistics import contains
from paceline.model.summary import ConfigurationSummary, Estimate


def compared(one: ConfigurationSummary, other: ConfigurationSummary) -> Estimate | None:
    """Return how many times as fast as the other the one is, by what both have."""
    return speedup_by(common_basis(one, other), one, other)


def is_tie(one: ConfigurationSummary, other: ConfigurationSummary) -> bool:
    """Whether the 95% interval of the ratio of two configurations includes 1."""
    found = compared(one, other)
    return found is not None and contains(found, 1.0) is True


def ties(items: Sequence[ConfigurationSummary]) -> tuple[tuple[str, ...], ...]:
    """Return groups of labels, the fastest first, in which each ties with the group's fastest.

    Where nothing is known of the uncertainty there is no tie either: nobody can tell.
    """
    left = sorted(
        (item for item in items if item.speedup is not None),
        key=lambda item: -(item.speedup.mean if item.speedup else 0.0),
    )
    groups = []
    while left:
        leader, *others = left
        same = [item for item in others if is_tie(leader, item)]
        if same:
            groups.append(tuple(item.configuration.label for item in (leader, *same)))
        left = [item for item in others if item not in same]
    return tuple(groups)
