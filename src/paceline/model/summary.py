"""Summaries: what was measured, with how much certainty. Missing is None, never zero."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from paceline.model.plan import Configuration


@dataclass(frozen=True)
class RankSample:
    """What one rank of one sample measured."""

    rank: int
    host: str
    epoch_s: tuple[float, ...] = ()
    iteration_s: tuple[float, ...] = ()
    warmup_s: tuple[float, ...] = ()
    items: int | None = None
    data_s: float | None = None
    wait_s: float | None = None
    metrics: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Sample:
    """One run that counts as a measurement. `failed` holds the reason where it does not."""

    sample_id: str
    run_id: str
    configuration: Configuration
    index: int
    wall_s: float | None
    ranks: tuple[RankSample, ...] = ()
    items_per_s: float | None = None
    iteration_s: float | None = None
    epoch_s: float | None = None
    failed: str | None = None
    started_at: float | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Estimate:
    """A figure with its sample size, spread and 95% interval (None below two samples)."""

    n: int
    mean: float
    median: float
    spread: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class ConfigurationSummary:
    """All that is known of one configuration."""

    configuration: Configuration
    is_baseline: bool
    planned: int
    samples: tuple[Sample, ...]
    items_per_s: Estimate | None = None
    iteration_s: Estimate | None = None
    epoch_s: Estimate | None = None
    wall_s: Estimate | None = None
    speedup: Estimate | None = None
    efficiency: Estimate | None = None
    notes: tuple[str, ...] = ()

    @property
    def good(self) -> tuple[Sample, ...]:
        """The samples that count."""
        return tuple(sample for sample in self.samples if sample.failed is None)


@dataclass(frozen=True)
class StudySummary:
    """What a study found, ready to be shown in any form."""

    name: str
    headline: str
    unit: str
    configurations: tuple[ConfigurationSummary, ...]
    created_at: float
    data: str
    measured: str
    notes: tuple[str, ...] = ()
    provenance: Mapping[str, object] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        """Whether every planned sample was taken and counts."""
        return all(len(item.good) >= item.planned for item in self.configurations)
