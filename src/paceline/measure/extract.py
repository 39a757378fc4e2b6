r"""Extractors: figures read off the output of scripts that report no events.

A spec names them by what they find, each a regular expression over single lines:

    {"epoch_s": "Epoch \d+ took: ([\d.]+)"}

The value is the group `value`, else the first group but `rank`, else the whole match. The rank
is the group `rank`, as in `rank: (?P<rank>\d+)\] Epoch \d+ took: (?P<value>[\d.]+)`, else the rank
whose log it is; without either, in the log of several ranks, the value belongs to the run.

`epoch_s`, `iteration_s` and `items_per_s` become the sample's own figures. Any other name is a
metric, of which the last value counts.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean

from paceline.errors import UsageError
from paceline.measure.samples import with_ranks
from paceline.model.summary import RankSample, Sample

EPOCH_S = "epoch_s"
ITERATION_S = "iteration_s"
ITEMS_PER_S = "items_per_s"
_FIGURES = frozenset({EPOCH_S, ITERATION_S, ITEMS_PER_S})

Values = Mapping[str, tuple[float, ...]]


@dataclass(frozen=True)
class ProcessLog:
    """The output of one process, and the ranks that live in it."""

    ranks: tuple[int, ...]
    lines: Iterable[str]


@dataclass(frozen=True)
class Extracted:
    """What the extractors found, in the order of the logs, per rank and for the run."""

    ranks: Mapping[int, Values] = field(default_factory=dict)
    run: Values = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def compile_extractors(patterns: Mapping[str, str]) -> dict[str, re.Pattern[str]]:
    """Compile the expressions; a UsageError names the one that is not valid."""
    return {name: _compile(name, pattern) for name, pattern in patterns.items()}


def _compile(name: str, pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise UsageError(
            f"the extractor {name!r} is not a regular expression: {error}",
            hint=f"Mend {pattern!r}; in YAML, single quotes keep backslashes as they are.",
        ) from error


def extract(extractors: Mapping[str, str], logs: Iterable[ProcessLog]) -> Extracted:
    """Apply every extractor to every line of every log."""
    patterns = compile_extractors(extractors)
    found: dict[int | None, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    unreadable: dict[str, str] = {}
    for name, rank, text in _matches(patterns, logs):
        value = _number(text)
        if value is None:
            unreadable.setdefault(name, text)
        else:
            found[rank][name].append(value)
    run = _frozen(found.pop(None, {}))
    ranks = {rank: _frozen(values) for rank, values in found.items() if rank is not None}
    return Extracted(ranks, run, _notes(patterns, ranks, run, unreadable))


def _matches(
    patterns: Mapping[str, re.Pattern[str]], logs: Iterable[ProcessLog]
) -> Iterator[tuple[str, int | None, str]]:
    """Yield every hit as the extractor's name, the rank (None: the run's) and the value's text."""
    for log in logs:
        own = log.ranks[0] if len(log.ranks) == 1 else None
        for line in log.lines:
            for name, pattern in patterns.items():
                match = pattern.search(line)
                if match is not None:
                    yield name, _rank(match, own), _text(match)


def with_extracted(
    sample: Sample,
    found: Extracted,
    *,
    warmup: int = 0,
    hosts: Mapping[int, str] | None = None,
) -> Sample:
    """Return the sample with what was found in the logs; what ranks reported takes precedence."""
    known = {rank.rank: rank for rank in sample.ranks}
    for rank, values in found.ranks.items():
        before = known.get(rank) or RankSample(rank=rank, host=(hosts or {}).get(rank, ""))
        known[rank] = _with_values(before, values, warmup)
    world_size = sample.configuration.world_size
    ranks = [known[rank] for rank in sorted(known) if rank < world_size]
    merged = with_ranks(replace(sample, notes=(*sample.notes, *found.notes)), ranks)
    return _with_run_values(merged, found, warmup)


def _with_values(rank: RankSample, values: Values, warmup: int) -> RankSample:
    epochs = rank.epoch_s or values.get(EPOCH_S, ())
    iterations = values.get(ITERATION_S, ())
    first_s = epochs[0] if epochs and rank.first_epoch_s is None else rank.first_epoch_s
    return replace(
        rank,
        epoch_s=epochs,
        iteration_s=rank.iteration_s or iterations[warmup:],
        warmup_s=rank.warmup_s or iterations[:warmup],
        first_epoch_s=first_s,
        first_epoch_whole=rank.first_epoch_whole or (bool(epochs) and first_s == epochs[0]),
        metrics={**_metrics(values), **rank.metrics},
    )


def _with_run_values(sample: Sample, found: Extracted, warmup: int) -> Sample:
    """Fill the figures that are still missing with those that belong to the run as a whole."""
    if sample.failed is not None:
        return replace(sample, metrics={**sample.metrics, **_metrics(found.run)})
    run = found.run
    iterations = run.get(ITERATION_S, ())[warmup:]
    return replace(
        sample,
        epoch_s=_either(sample.epoch_s, run.get(EPOCH_S, ())),
        iteration_s=_either(sample.iteration_s, iterations),
        items_per_s=_either(sample.items_per_s, _run_throughput(found)),
        metrics={**sample.metrics, **_metrics(run)},
    )


def _run_throughput(found: Extracted) -> tuple[float, ...]:
    """Return the script's own throughput where it is clear that it is that of all ranks.

    A script says it once, for all, or its only rank does. If every rank says a number, nobody
    can know from outside whether that is the rank's own or everybody's.
    """
    if ITEMS_PER_S in found.run:
        return found.run[ITEMS_PER_S]
    speakers = [values[ITEMS_PER_S] for values in found.ranks.values() if ITEMS_PER_S in values]
    return speakers[0] if len(speakers) == 1 else ()


def _either(known: float | None, values: Sequence[float]) -> float | None:
    return known if known is not None or not values else fmean(values)


def _metrics(values: Values) -> dict[str, float]:
    return {name: found[-1] for name, found in values.items() if name not in _FIGURES}


def _text(match: re.Match[str]) -> str:
    names = match.re.groupindex
    if "value" in names:
        return match.group("value") or ""
    others = [number for number in range(1, match.re.groups + 1) if number != names.get("rank")]
    return match.group(others[0] if others else 0) or ""


def _rank(match: re.Match[str], own: int | None) -> int | None:
    said = match.groupdict().get("rank")
    return int(said) if said is not None and said.isdigit() else own


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _frozen(values: Mapping[str, Sequence[float]]) -> dict[str, tuple[float, ...]]:
    return {name: tuple(found) for name, found in values.items()}


def _notes(
    patterns: Mapping[str, re.Pattern[str]],
    ranks: Mapping[int, Values],
    run: Values,
    unreadable: Mapping[str, str],
) -> tuple[str, ...]:
    hits = set(run).union(*ranks.values())
    silent = [
        f"the extractor {name!r} found nothing in the output"
        for name in patterns
        if name not in hits and name not in unreadable
    ]
    odd = [
        f"the extractor {name!r} found {text[:40]!r}, which is not a number"
        for name, text in unreadable.items()
    ]
    return (*silent, *odd)
