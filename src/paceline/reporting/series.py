"""Which configurations belong together on one line of a chart."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from paceline.measure.alike import batch_of
from paceline.model.plan import Configuration
from paceline.model.summary import ConfigurationSummary
from paceline.reporting.palette import series_colour
from paceline.reporting.table import telling_words

Key = tuple[object, ...]


@dataclass(frozen=True)
class Series:
    """Configurations that differ in the number of processes only, smallest first."""

    index: int
    name: str
    items: tuple[ConfigurationSummary, ...]


def series_of(items: Sequence[ConfigurationSummary], scaling: str = "weak") -> tuple[Series, ...]:
    """Return the lines of a chart over the number of processes.

    Configurations with the same batch (of each process, or of all together under strong scaling)
    and the same traits share a line; where two of them have
    the same number of processes on different numbers of nodes, each number of nodes has its own.
    """
    by_nodes = _is_ambiguous(items, scaling)
    groups: dict[Key, list[ConfigurationSummary]] = defaultdict(list)
    for item in items:
        if not item.is_baseline:
            groups[_key(item.configuration, scaling, by_nodes=by_nodes)].append(item)
    baseline = next((item for item in items if item.is_baseline), None)
    if not groups and baseline is not None:
        groups[_key(baseline.configuration, scaling, by_nodes=by_nodes)] = []
    made = []
    for index, (key, group) in enumerate(groups.items()):
        members = _with_baseline(key, group, baseline, scaling)
        name = _name(members[-1].configuration, items, scaling, by_nodes=by_nodes)
        made.append(Series(index, name, members))
    return tuple(made)


def colours_of(items: Sequence[ConfigurationSummary], scaling: str = "weak") -> list[str]:
    """Return the colour of each configuration: its series', and a quiet one for the baseline."""
    colours = {
        item.configuration: series_colour(series.index)
        for series in series_of(items, scaling)
        for item in series.items
    }
    return ["@base" if item.is_baseline else colours[item.configuration] for item in items]


def _is_ambiguous(items: Sequence[ConfigurationSummary], scaling: str) -> bool:
    seen: set[Key] = set()
    for item in items:
        configuration = item.configuration
        key = (configuration.world_size, *_key(configuration, scaling, by_nodes=False))
        if key in seen:
            return True
        seen.add(key)
    return False


def _key(configuration: Configuration, scaling: str, *, by_nodes: bool) -> Key:
    nodes = configuration.nodes if by_nodes else None
    return (nodes, batch_of(configuration, scaling), configuration.traits)


def _with_baseline(
    key: Key,
    group: Sequence[ConfigurationSummary],
    baseline: ConfigurationSummary | None,
    scaling: str,
) -> tuple[ConfigurationSummary, ...]:
    """Return the group in order of size, begun with the baseline where it is of the same kind."""
    members = sorted(group, key=lambda item: item.configuration.world_size)
    if (
        baseline is not None
        and key[1:] == _key(baseline.configuration, scaling, by_nodes=False)[1:]
    ):
        return (baseline, *members)
    return tuple(members)


def _name(
    configuration: Configuration,
    items: Sequence[ConfigurationSummary],
    scaling: str,
    *,
    by_nodes: bool,
) -> str:
    words = list(telling_words(configuration, items, scaling))
    if by_nodes:
        nodes = configuration.nodes
        words.insert(0, "1 node" if nodes == 1 else f"{nodes} nodes")
    return ", ".join(words) or "measured"
