"""Samples -> the summary of a study: every configuration against the baseline.

Efficiency is the speedup over the growth in the number of processes.

A configuration that differs from the baseline in more than its processes is compared all the
same, and a note says that its speedup includes the effect of the difference.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from paceline.measure.alike import differences
from paceline.measure.basis import BY_WALL, common_basis, speedup_by
from paceline.measure.costs import cost_per_epoch_usd, expected_epoch_s
from paceline.measure.headline import headline
from paceline.measure.oddities import bursts, outlying_runs, stragglers
from paceline.measure.parts import time_parts
from paceline.measure.settings import hidden_differences, stolen
from paceline.measure.statistics import estimate, karp_flatt, scaled
from paceline.measure.ties import ties
from paceline.model.plan import Configuration, StudyPlan
from paceline.model.summary import ConfigurationSummary, Estimate, Sample, StudySummary


def summarise(
    plan: StudyPlan,
    samples: Sequence[Sample],
    *,
    unit: str,
    data: str,
    measured: str,
    created_at: float,
    provenance: Mapping[str, object] | None = None,
    scaling: str = "weak",
) -> StudySummary:
    """Return what a study found so far; configurations in the plan's order, the baseline first."""
    order = dict.fromkeys([plan.baseline, *plan.configurations])
    measured_ones = [_measured(plan, configuration, samples) for configuration in order]
    baseline = measured_ones[0]
    compared = tuple(compared_with(item, baseline, scaling) for item in measured_ones)
    groups = ties(compared)
    return StudySummary(
        name=plan.name,
        headline=headline(compared, unit, scaling=scaling, ties=groups),
        unit=unit,
        configurations=compared,
        created_at=created_at,
        data=data,
        measured=measured,
        notes=(*plan.notes, *hidden_differences(item for item in samples if not item.failed)),
        provenance=dict(provenance or {}),
        scaling=scaling,
        ties=groups,
    )


def _measured(
    plan: StudyPlan, configuration: Configuration, samples: Sequence[Sample]
) -> ConfigurationSummary:
    """Return one configuration's own figures, without any comparison."""
    own = sorted(
        (sample for sample in samples if sample.configuration == configuration),
        key=lambda sample: (sample.index, sample.started_at or 0.0),
    )
    good = [sample for sample in own if sample.failed is None]
    return ConfigurationSummary(
        configuration=configuration,
        is_baseline=configuration == plan.baseline,
        planned=sum(1 for item in plan.samples if item.configuration == configuration),
        samples=tuple(own),
        items_per_s=_over([sample.items_per_s for sample in good]),
        iteration_s=_over([sample.iteration_s for sample in good]),
        epoch_s=_over([sample.epoch_s for sample in good]),
        wall_s=_over([sample.wall_s for sample in good]),
        expected_epoch_s=_over([expected_epoch_s(sample) for sample in good]),
        cost_per_epoch_usd=_over([cost_per_epoch_usd(sample) for sample in good]),
        parts=time_parts(good),
    )


def _over(values: Sequence[float | None]) -> Estimate | None:
    return estimate(value for value in values if value is not None)


def compared_with(
    item: ConfigurationSummary, baseline: ConfigurationSummary, scaling: str = "weak"
) -> ConfigurationSummary:
    """Return the configuration with its speedup and efficiency over the baseline."""
    basis = common_basis(item, baseline)
    if basis is not None and item.is_baseline:
        speedup: Estimate | None = Estimate(n=len(item.good), mean=1.0, median=1.0)
    else:
        speedup = speedup_by(basis, item, baseline)
    growth = item.configuration.world_size / baseline.configuration.world_size
    unlike = differences(item.configuration, baseline.configuration, scaling)
    return replace(
        item,
        basis=basis,
        speedup=speedup,
        efficiency=None if speedup is None else scaled(speedup, 1 / growth),
        # Of what differs in more than processes, no part of the loss is known to be serial.
        serial_fraction=None if speedup is None or unlike else karp_flatt(speedup, growth),
        notes=_notes(item, baseline, basis, unlike),
    )


def _notes(
    item: ConfigurationSummary, baseline: ConfigurationSummary, basis: str | None, unlike: str
) -> tuple[str, ...]:
    notes = [*outlying_runs(item.good)]
    for sample in item.good:
        notes += [*stragglers(sample), *bursts(sample), *stolen(sample)]
    failed = len(item.samples) - len(item.good)
    if failed:
        notes.append(f"{failed} of {len(item.samples)} samples failed")
    if item.good and len(item.good) == 1:
        notes.append("one sample: there is no interval")
    if item.is_baseline:
        return tuple(notes)
    if item.good and baseline.good and basis is None:
        notes.append("it has no figure in common with the baseline that could be compared")
    if basis == BY_WALL:
        notes.append("compared by wall time, which supposes the same work in total")
    if unlike and basis is not None:
        notes.append(f"unlike the baseline: {unlike}; the speedup includes that effect")
    return tuple(notes)
