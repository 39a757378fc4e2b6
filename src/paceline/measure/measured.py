"""What was timed, in words: from what the ranks reported, and where that is not what was planned.

A script of one's own may heed the length of a sample or not: its word counts, not the spec's.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from paceline.model.spec import Measurement
from paceline.model.summary import Sample

# Training for a time ends after whole iterations, and set-up may or may not be a part of it.
_ABOUT = (0.5, 1.5)


def measured_words(measurement: Measurement, samples: Sequence[Sample]) -> str:
    """Return what the samples that count have timed; before the first, what is planned."""
    good = _good(samples)
    if not good:
        return f"planned: {planned_words(measurement)}"
    counts = {len(rank.iteration_s) for sample in good for rank in sample.ranks} - {0}
    has_epochs = any(sample.epoch_s is not None for sample in good)
    if has_epochs and (measurement.kind == "epoch" or not counts):
        warmup = measurement.warmup if counts else 0
        return f"whole epochs; of the iterations{_left_out(warmup)}" if warmup else "whole epochs"
    if counts:
        return f"{_range(counts)} iterations{_after_warmup(good)}"
    if any(sample.items_per_s or sample.iteration_s for sample in good):
        return "what the job printed"
    return "whole runs, by their wall time"


def planned_words(measurement: Measurement) -> str:
    """Return what the spec wants to be timed."""
    if measurement.kind == "iterations" and measurement.total_iterations is not None:
        return f"{measurement.total_iterations} iterations{_left_out(measurement.warmup)}"
    if measurement.kind == "seconds":
        return f"the iterations of {measurement.amount:g} s{_left_out(measurement.warmup)}"
    return "whole epochs"


def measured_notes(measurement: Measurement, samples: Sequence[Sample]) -> tuple[str, ...]:
    """Return in a sentence where samples that count differ from what was planned."""
    # What reports nothing is measured from outside, and says so itself.
    told = [sample for sample in _good(samples) if sample.ranks]
    if measurement.kind == "epoch":
        lacking = [sample for sample in told if sample.epoch_s is None]
        text = "whole epochs were to be timed, and the ranks reported none"
        return (f"{text}: {_share(lacking, told)}",) if lacking else ()
    if measurement.kind == "iterations":
        return _iteration_notes(int(measurement.amount or 0), told)
    return _time_notes(float(measurement.amount or 0.0), told)


def _iteration_notes(planned: int, told: Sequence[Sample]) -> tuple[str, ...]:
    odd = [sample for sample in told if _counts(sample) != {planned}]
    if not odd:
        return ()
    found = _range({count for sample in odd for count in _counts(sample)})
    text = f"{planned} iterations were to be measured, and the ranks reported {found}"
    return (f"{text}: {_share(odd, told)}",)


def _time_notes(planned_s: float, told: Sequence[Sample]) -> tuple[str, ...]:
    times = {sample.sample_id: _trained_s(sample) for sample in told}
    low_s, high_s = (planned_s * factor for factor in _ABOUT)
    odd = [sample for sample in told if not low_s <= times[sample.sample_id] <= high_s]
    if not odd:
        return ()
    found = sorted(times[sample.sample_id] for sample in odd)
    text = f"a sample was to train for {planned_s:g} s, and the ranks reported"
    return (f"{text} {found[0]:.3g} to {found[-1]:.3g} s: {_share(odd, told)}",)


def _good(samples: Iterable[Sample]) -> list[Sample]:
    return [sample for sample in samples if sample.failed is None]


def _counts(sample: Sample) -> set[int]:
    return {len(rank.iteration_s) for rank in sample.ranks}


def _trained_s(sample: Sample) -> float:
    return max(math.fsum((*rank.warmup_s, *rank.iteration_s)) for rank in sample.ranks)


def _after_warmup(good: Iterable[Sample]) -> str:
    warmups = {len(rank.warmup_s) for sample in good for rank in sample.ranks} - {0}
    return f" after {_range(warmups)} of warm-up" if warmups else ""


def _left_out(warmup: int) -> str:
    return f", the first {warmup} left out" if warmup else ""


def _range(numbers: Iterable[int]) -> str:
    known = sorted(numbers)
    return str(known[0]) if known[0] == known[-1] else f"{known[0]} to {known[-1]}"


def _share(some: Sequence[Sample], of: Sequence[Sample]) -> str:
    return f"{len(some)} of {len(of)} samples"
