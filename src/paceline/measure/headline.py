"""The answer of a study in one or two plain sentences, as honest as its figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from paceline.measure.alike import alike
from paceline.measure.basis import BY_EPOCH, BY_THROUGHPUT, BY_WALL
from paceline.measure.statistics import contains
from paceline.model.plan import Configuration
from paceline.model.summary import ConfigurationSummary, Estimate

_VERBS = {
    BY_THROUGHPUT: ("train", "trains", ""),
    BY_EPOCH: ("finish", "finishes", "an epoch "),
    BY_WALL: ("finish", "finishes", "the job, start-up included, "),
}


def headline(
    items: Sequence[ConfigurationSummary],
    unit: str,
    *,
    scaling: str = "weak",
    ties: Sequence[Sequence[str]] = (),
) -> str:
    """Return what the study says about scaling so far."""
    baseline = next((item for item in items if item.is_baseline), None)
    answer = _answer(_Question(items, baseline, unit, scaling, ties))
    return " ".join(part for part in (answer, _count_sentence(items)) if part)


@dataclass(frozen=True)
class _Question:
    """All that the answer follows from."""

    items: Sequence[ConfigurationSummary]
    baseline: ConfigurationSummary | None
    unit: str
    scaling: str
    ties: Sequence[Sequence[str]]


def _answer(asked: _Question) -> str:
    items, baseline = asked.items, asked.baseline
    if not any(item.good for item in items):
        return _nothing(items)
    if baseline is None or not baseline.good:
        name = baseline.configuration.title if baseline else "the baseline"
        return f"No speedup can be told: no sample of the baseline ({name}) counts."
    best, largest = _champions(items, baseline, asked.scaling)
    if best is None:
        return _baseline_only(items, baseline, asked.unit)
    sentences = [_comparison(best, baseline, asked.scaling), _tie(best, baseline, asked)]
    if largest is not None and largest is not best and largest.speedup is not None:
        who = _processes(largest.configuration, baseline.configuration)
        sentences.append(f"The largest, {who}: {_times(largest.speedup.mean)} times.")
    return " ".join(sentence for sentence in sentences if sentence)


def _tie(best: ConfigurationSummary, baseline: ConfigurationSummary, asked: _Question) -> str:
    """Return who is as fast as the fastest, as far as anybody can tell; not the baseline."""
    label = best.configuration.label
    same = next((group for group in asked.ties if label in group), ())
    others = [
        item.configuration.title
        for item in asked.items
        if item.configuration.label in same and item is not best and item is not baseline
    ]
    if not others:
        return ""
    return f"It is a tie with {'; '.join(others)}: they cannot be told apart."


def _nothing(items: Sequence[ConfigurationSummary]) -> str:
    failed = [sample for item in items for sample in item.samples]
    if not failed:
        return "Nothing has been measured yet."
    return f"Every sample failed, the first because: {_one_line(failed[0].failed or '')}."


def _baseline_only(
    items: Sequence[ConfigurationSummary], baseline: ConfigurationSummary, unit: str
) -> str:
    if any(item.good for item in items if not item.is_baseline):
        return "No speedup can be told: no figure is known both of the baseline and of another."
    who = _processes(baseline.configuration, baseline.configuration)
    one = baseline.configuration.world_size == 1
    if baseline.items_per_s is None:
        return f"Only the baseline, {who}, has been measured."
    rate = f"{baseline.items_per_s.mean:.4g} {unit}/s"
    return f"{who} train{'s' if one else ''} {rate}; nothing else has been measured."


def _champions(
    items: Sequence[ConfigurationSummary], baseline: ConfigurationSummary, scaling: str
) -> tuple[ConfigurationSummary | None, ConfigurationSummary | None]:
    """Return the fastest and the largest configuration, of those like the baseline if any."""
    others = [item for item in items if not item.is_baseline and item.speedup is not None]
    similar = [
        item for item in others if alike(item.configuration, baseline.configuration, scaling)
    ]
    candidates = similar or others
    if not candidates:
        return None, None
    best = max(candidates, key=lambda item: item.speedup.mean if item.speedup else 0.0)
    largest = max(candidates, key=lambda item: item.configuration.world_size)
    is_larger = largest.configuration.world_size > best.configuration.world_size
    return best, largest if is_larger else None


def _comparison(best: ConfigurationSummary, baseline: ConfigurationSummary, scaling: str) -> str:
    speedup, efficiency = best.speedup, best.efficiency
    if speedup is None or efficiency is None:
        return ""
    claim = _claim(best, baseline, speedup.mean, scaling)
    if contains(speedup, 1.0):
        return (
            f"{claim}, but the 95% interval, {_interval(speedup)}, includes 1: no difference can "
            "be told. More or longer samples would tell."
        )
    share = f"each works at {efficiency.mean:.0%} of the baseline's speed"
    if speedup.low is None:
        return (
            f"{claim}: {share}. There is no interval, because one of the two has a single "
            "sample: how sure this is, nobody knows yet."
        )
    slower = ", which is slower" if speedup.mean < 1 else ""
    return f"{claim}{slower} (95% interval {_interval(speedup)}): {share}."


def _claim(
    best: ConfigurationSummary, baseline: ConfigurationSummary, times: float, scaling: str
) -> str:
    who = _processes(best.configuration, baseline.configuration)
    base = str(baseline.configuration.world_size)
    one = best.configuration.world_size == 1
    if not alike(best.configuration, baseline.configuration, scaling):
        who, base, one = best.configuration.title, baseline.configuration.title, True
    many_verb, one_verb, what = _VERBS[best.basis or BY_THROUGHPUT]
    return f"{who} {one_verb if one else many_verb} {what}{_times(times)} times as fast as {base}"


def _processes(configuration: Configuration, baseline: Configuration) -> str:
    number = configuration.world_size
    text = "1 process" if number == 1 else f"{number} processes"
    if configuration.nodes == baseline.nodes == 1:
        return text
    return f"{text} on {configuration.nodes} node{'' if configuration.nodes == 1 else 's'}"


def _count_sentence(items: Sequence[ConfigurationSummary]) -> str:
    planned = sum(item.planned for item in items)
    good = sum(min(len(item.good), item.planned) for item in items)
    failed = sum(len(item.samples) - len(item.good) for item in items)
    if good < planned:
        tail = f"; {failed} failed" if failed else ""
        return f"{good} of {planned} planned samples count{tail}."
    if failed:
        what = "1 failed sample was" if failed == 1 else f"{failed} failed samples were"
        return f"{what} taken again."
    return ""


def _times(value: float) -> str:
    return f"{value:.2f}" if value < 100 else f"{value:.0f}"  # noqa: PLR2004 - three digits do


def _interval(value: Estimate) -> str:
    return f"{_times(value.low or 0.0)} to {_times(value.high or 0.0)}"


def _one_line(text: str) -> str:
    first = text.strip().splitlines()[0] if text.strip() else "no reason is known"
    return first.rstrip(".")[:200]
