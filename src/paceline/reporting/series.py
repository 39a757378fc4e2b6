"""Which configurations belong together on one line of a chart."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

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


def series_of(items: Sequence[ConfigurationSummary]) -> tuple[Series, ...]:
    """Return the lines of a chart over the number of processes.

    Configurations with the same batch size and arguments share a line; where two of them have
    the same number of processes on different numbers of nodes, each number of nodes has its own.
    """
    by_nodes = _is_ambiguous(items)
    groups: dict[Key, list[ConfigurationSummary]] = defaultdict(list)
    for item in items:
        if not item.is_baseline:
            groups[_key(item.configuration, by_nodes=by_nodes)].append(item)
    baseline = next((item for item in items if item.is_baseline), None)
    if not groups and baseline is not None:
        groups[_key(baseline.configuration, by_nodes=by_nodes)] = []
    made = []
    for index, (key, group) in enumerate(groups.items()):
        members = _with_baseline(key, group, baseline)
        name = _name(members[-1].configuration, items, by_nodes=by_nodes)
        made.append(Series(index, name, members))
    return tuple(made)


def colours_of(items: Sequence[ConfigurationSummary]) -> list[str]:
    """Return the colour of each configuration: its series', and a quiet one for the baseline."""
    colours = {
        item.configuration: series_colour(series.index)
        for series in series_of(items)
        for item in series.items
    }
    return ["@base" if item.is_baseline else colours[item.configuration] for item in items]


def _is_ambiguous(items: Sequence[ConfigurationSummary]) -> bool:
    seen: set[Key] = set()
    for item in items:
        configuration = item.configuration
        key = (configuration.world_size, configuration.batch_size, configuration.args)
        if key in seen:
            return True
        seen.add(key)
    return False


def _key(configuration: Configuration, *, by_nodes: bool) -> Key:
    nodes = configuration.nodes if by_nodes else None
    return (nodes, configuration.batch_size, configuration.args)


def _with_baseline(
    key: Key, group: Sequence[ConfigurationSummary], baseline: ConfigurationSummary | None
) -> tuple[ConfigurationSummary, ...]:
    """Return the group in order of size, begun with the baseline where it is of the same kind."""
    members = sorted(group, key=lambda item: item.configuration.world_size)
    if baseline is not None and key[1:] == _key(baseline.configuration, by_nodes=False)[1:]:
        return (baseline, *members)
    return tuple(members)


def _name(
    configuration: Configuration, items: Sequence[ConfigurationSummary], *, by_nodes: bool
) -> str:
    words = list(telling_words(configuration, items))
    if by_nodes:
        nodes = configuration.nodes
        words.insert(0, "1 node" if nodes == 1 else f"{nodes} nodes")
    return ", ".join(words) or "measured"
