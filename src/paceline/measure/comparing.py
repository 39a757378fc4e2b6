"""Two studies -> their comparison: the same configurations, before and after."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from paceline.measure.basis import BY_EPOCH, BY_THROUGHPUT, BY_WALL, common_basis, speedup_by
from paceline.measure.statistics import contains
from paceline.model.comparison import (
    FASTER,
    SLOWER,
    TIE,
    UNKNOWN,
    ComparedConfiguration,
    Comparison,
)
from paceline.model.summary import ConfigurationSummary, Estimate, StudySummary

# What differs between any two studies, and explains nothing.
_NO_CAUSE = frozenset({"spec.name", "name"})
_PASSING = ("disk_free_bytes", "free_port")


def compare(first: StudySummary, second: StudySummary) -> Comparison:
    """Return how the second study did against the first."""
    mine = {item.configuration: item for item in first.configurations}
    theirs = {item.configuration: item for item in second.configurations}
    both = tuple(
        _compared(mine[key], theirs[key])
        for key in mine
        if key in theirs and mine[key].good and theirs[key].good
    )
    common = {item.configuration for item in both}
    return Comparison(
        first=first.name,
        second=second.name,
        unit=second.unit,
        headline=_headline(first.name, second.name, both),
        configurations=both,
        only_first=tuple(key for key, item in mine.items() if key not in common and item.good),
        only_second=tuple(key for key, item in theirs.items() if key not in common and item.good),
        changed=_changed(first.provenance, second.provenance),
        notes=tuple(_notes(first, second)),
    )


def _compared(one: ConfigurationSummary, other: ConfigurationSummary) -> ComparedConfiguration:
    basis = common_basis(other, one)
    ratio = speedup_by(basis, other, one)
    return ComparedConfiguration(
        configuration=one.configuration,
        basis=basis,
        first=_figure(one, basis),
        second=_figure(other, basis),
        ratio=ratio,
        verdict=_verdict(ratio),
    )


def _figure(item: ConfigurationSummary, basis: str | None) -> Estimate | None:
    figures = {BY_THROUGHPUT: item.items_per_s, BY_EPOCH: item.epoch_s, BY_WALL: item.wall_s}
    return figures.get(basis or "")


def _verdict(ratio: Estimate | None) -> str:
    same = None if ratio is None else contains(ratio, 1.0)
    if ratio is None or same is None:
        return UNKNOWN
    if same:
        return TIE
    return FASTER if ratio.mean > 1 else SLOWER


def _headline(first: str, second: str, both: tuple[ComparedConfiguration, ...]) -> str:
    if not both:
        return f"{first} and {second} have no configuration in common that both have measured."
    counts = Counter(item.verdict for item in both)
    if counts[TIE] == len(both):
        where = "the one configuration" if len(both) == 1 else f"all {len(both)} configurations"
        return f"No difference can be told between {first} and {second} in {where}."
    words = [_span(verdict, both) for verdict in (FASTER, SLOWER) if counts[verdict]]
    if counts[TIE]:
        words.append(f"cannot be told apart in {counts[TIE]}")
    if counts[UNKNOWN]:
        words.append(f"has too few samples to tell in {counts[UNKNOWN]}")
    total = "1 configuration" if len(both) == 1 else f"{len(both)} configurations"
    return f"Against {first}, {second} is {_listed(words)}, of {total} in common."


def _span(verdict: str, both: tuple[ComparedConfiguration, ...]) -> str:
    times = sorted(
        item.ratio.mean for item in both if item.verdict == verdict and item.ratio is not None
    )
    low, high = f"{times[0]:.2f}", f"{times[-1]:.2f}"
    by = f"{low} times as fast" if low == high else f"{low} to {high} times as fast"
    return f"{verdict} in {len(times)} ({by})"


def _listed(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])}, and {words[-1]}"


def _notes(first: StudySummary, second: StudySummary) -> Iterator[str]:
    for what, one, other in (
        ("data", first.data, second.data),
        ("what was measured", first.measured, second.measured),
        ("scaling", first.scaling, second.scaling),
        ("unit", first.unit, second.unit),
    ):
        if one != other:
            yield f"they differ in {what}: {one or 'unknown'}; {other or 'unknown'}"


def _changed(
    first: Mapping[str, object], second: Mapping[str, object]
) -> dict[str, tuple[object, object]]:
    """Return the leaves of both provenances that are not the same, by their paths."""
    one, other = dict(_leaves(first)), dict(_leaves(second))
    return {
        path: (one.get(path), other.get(path))
        for path in dict.fromkeys((*one, *other))
        if one.get(path) != other.get(path)
        and path not in _NO_CAUSE
        and not path.endswith(_PASSING)
    }


def _leaves(value: object, path: str = "") -> Iterator[tuple[str, object]]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _leaves(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, (list, tuple)):
        yield path, ", ".join(str(item) for item in value)
    else:
        yield path, value
