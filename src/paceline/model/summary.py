"""Summaries: what was measured, with how much certainty. Missing is None, never zero."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from paceline.model.plan import Configuration


@dataclass(frozen=True)
class RankSample:
    """What one rank of one sample measured.

    `epoch_s` holds whole epochs only; `first_epoch_s` is the time spent in epoch 0 as far as it
    went, and `first_epoch_whole` says whether that was all of it. `partial` are the positions in
    `iteration_s` of iterations that had fewer items than a full batch. `items`, `data_s` and
    `wait_s` are sums over the measured iterations, those of the warm-up left out.
    `iterations_per_epoch` is how many a whole epoch has, as the rank says. `settings` are those
    that held while it worked, such as its threads; `steal` is the share of its host's CPU time
    that the hypervisor gave to others meanwhile.
    """

    rank: int
    host: str
    epoch_s: tuple[float, ...] = ()
    iteration_s: tuple[float, ...] = ()
    warmup_s: tuple[float, ...] = ()
    items: int | None = None
    data_s: float | None = None
    wait_s: float | None = None
    metrics: Mapping[str, float] = field(default_factory=dict)
    first_epoch_s: float | None = None
    first_epoch_whole: bool = False
    partial: tuple[int, ...] = ()
    iterations_per_epoch: int | None = None
    settings: Mapping[str, str | int | float | bool | None] = field(default_factory=dict)
    steal: float | None = None


@dataclass(frozen=True)
class Sample:
    """One run that counts as a measurement. `failed` holds the reason where it does not.

    How each figure follows from the ranks' is defined in `paceline.measure.samples`. `metrics`
    are numbers of the run as a whole, such as those read off the output of an untouched script.
    `usd_per_host_hour` is what each host of the run cost, and `price_source` who says so.
    """

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
    metrics: Mapping[str, float] = field(default_factory=dict)
    usd_per_host_hour: float | None = None
    price_source: str | None = None


@dataclass(frozen=True)
class Parts:
    """Where the time of an iteration went: these three add up to it."""

    compute_s: float
    wait_s: float
    input_s: float

    @property
    def total_s(self) -> float:
        """The whole iteration."""
        return self.compute_s + self.wait_s + self.input_s


@dataclass(frozen=True)
class Estimate:
    """A figure with its sample size, spread (standard deviation) and 95% interval.

    Spread and interval are None below two samples.
    """

    n: int
    mean: float
    median: float
    spread: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class TimeParts:
    """Where the time of an iteration goes, over the samples of a configuration."""

    compute_s: Estimate
    wait_s: Estimate
    input_s: Estimate


@dataclass(frozen=True)
class ConfigurationSummary:
    """All that is known of one configuration.

    `basis` says what the speedup compares: `throughput`, `epoch time` or `wall time`; it is None
    where there is no speedup. The baseline's own speedup is 1 by definition, without interval.
    `expected_epoch_s` is the time of a whole epoch: measured, or put together from iterations.
    `serial_fraction` is that of Karp and Flatt.
    """

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
    basis: str | None = None
    cost_per_epoch_usd: Estimate | None = None
    expected_epoch_s: Estimate | None = None
    serial_fraction: Estimate | None = None
    parts: TimeParts | None = None

    @property
    def good(self) -> tuple[Sample, ...]:
        """The samples that count."""
        return tuple(sample for sample in self.samples if sample.failed is None)


@dataclass(frozen=True)
class StudySummary:
    """What a study found, ready to be shown in any form.

    `unit` is what one item is called, such as `img`: throughput is shown in `img/s`. `data` and
    `measured` say in a few words what was trained on and what was timed. `scaling` is `weak` or
    `strong`. `ties` are groups of labels of configurations that cannot be told apart.
    """

    name: str
    headline: str
    unit: str
    configurations: tuple[ConfigurationSummary, ...]
    created_at: float
    data: str
    measured: str
    notes: tuple[str, ...] = ()
    provenance: Mapping[str, object] = field(default_factory=dict)
    scaling: str = "weak"
    ties: tuple[tuple[str, ...], ...] = ()

    @property
    def complete(self) -> bool:
        """Whether every planned sample was taken and counts."""
        return all(len(item.good) >= item.planned for item in self.configurations)


@dataclass(frozen=True)
class StudyProgress:
    """Where a study stands after a sample: the findings so far and what is still to come.

    `spent_usd` and `remaining_usd` are None where no price is known. `at_most`: the study may end
    before all of that, because it is adaptive.
    """

    summary: StudySummary
    done: int
    total: int
    remaining_s: float | None
    spent_usd: float | None = None
    remaining_usd: float | None = None
    at_most: bool = False


@dataclass(frozen=True)
class StudyOutcome:
    """A study that has ended: its findings, and where its files lie.

    `report_path` is None where the files could not be written; `trouble` then says why.
    """

    summary: StudySummary
    folder: Path
    report_path: Path | None
    text: str
    document: str
    trouble: str | None = None
