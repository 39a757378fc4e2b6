"""From samples to the summary of a study, and the sentence at its top."""

from __future__ import annotations

import math

import pytest

from paceline.measure.scaling import summarise
from paceline.model.plan import ArgValue, Configuration, PlannedSample, StudyPlan
from paceline.model.summary import ConfigurationSummary, Sample, StudySummary

ONE = Configuration(1, 1, 16)
TWO = Configuration(1, 2, 16)
FOUR = Configuration(2, 2, 16)


def _sample(configuration: Configuration, index: int, rate: float | None, **more: object) -> Sample:
    values = {"items_per_s": rate, "wall_s": 30.0, **more}
    name = f"{configuration.label}-{index}"
    return Sample(name, name, configuration, index, **values)  # type: ignore[arg-type]


def _samples(configuration: Configuration, *rates: float) -> list[Sample]:
    return [_sample(configuration, index, rate) for index, rate in enumerate(rates)]


def _summary(
    *groups: list[Sample], others: tuple[Configuration, ...] = (TWO,), planned: int = 3
) -> StudySummary:
    configurations = (ONE, *others)
    plan = StudyPlan(
        name="study",
        baseline=ONE,
        configurations=configurations,
        samples=tuple(
            PlannedSample(f"{item.label}-{index}", item, index)
            for item in configurations
            for index in range(planned)
        ),
        digest="d",
        notes=("planned so",),
    )
    samples = [sample for group in groups for sample in group]
    return summarise(
        plan, samples, unit="img", data="cifar10", measured="20 iterations", created_at=1.0
    )


def _of(summary: StudySummary, configuration: Configuration) -> ConfigurationSummary:
    return next(item for item in summary.configurations if item.configuration == configuration)


def test_speedup_and_efficiency_by_throughput() -> None:
    """The textbook case: 112 over 60 img/s on two processes."""
    summary = _summary(_samples(ONE, 59, 60, 61), _samples(TWO, 111, 112, 113))
    two = _of(summary, TWO)
    assert two.basis == "throughput"
    assert two.speedup is not None
    assert two.efficiency is not None
    assert two.speedup.mean == pytest.approx(112 / 60)
    assert two.efficiency.mean == pytest.approx(112 / 120)
    assert two.efficiency.low is not None
    assert two.speedup.low is not None
    assert two.efficiency.low == pytest.approx(two.speedup.low / 2)
    assert summary.complete
    assert summary.notes == ("planned so",)


def test_headline_in_plain_words() -> None:
    """The sentence that a person takes away has the figure, its interval and its meaning."""
    summary = _summary(_samples(ONE, 60.0, 60.1, 60.2), _samples(TWO, 111.5, 112.0, 111.8))
    assert summary.headline == (
        "2 processes train 1.86 times as fast as 1 (95% interval 1.85 to 1.87): each works at 93% "
        "of the baseline's speed."
    )


def test_headline_names_nodes_and_the_largest_if_it_is_not_the_fastest() -> None:
    """More processes that are slower than fewer are not hidden behind the best."""
    summary = _summary(
        _samples(ONE, 60, 60.1, 60.2),
        _samples(TWO, 112, 112.1, 112.2),
        _samples(FOUR, 80, 80.5, 81),
        others=(TWO, FOUR),
    )
    assert summary.headline.startswith("2 processes train 1.87 times as fast as 1")
    assert "The largest, 4 processes on 2 nodes: 1.34 times." in summary.headline


def test_headline_says_when_nothing_can_be_told() -> None:
    """An interval that includes 1 is called what it is."""
    summary = _summary(_samples(ONE, 50, 60, 70), _samples(TWO, 55, 63, 72))
    assert "includes 1: no difference can be told" in summary.headline


def test_headline_says_when_it_is_slower() -> None:
    """A slowdown is not called a speedup."""
    summary = _summary(_samples(ONE, 60, 60.1, 60.2), _samples(TWO, 30, 30.1, 30.2))
    assert "2 processes train 0.50 times as fast as 1, which is slower" in summary.headline


def test_headline_with_one_sample_claims_no_certainty() -> None:
    """One sample of each gives a figure and the admission that it may mean little."""
    summary = _summary(_samples(ONE, 60), _samples(TWO, 112), planned=1)
    assert "There is no interval" in summary.headline
    assert "nobody knows yet" in summary.headline
    assert _of(summary, TWO).notes == ("one sample: there is no interval",)


def test_failed_samples_are_counted_and_not_averaged() -> None:
    """A failed sample stays in the list, in a note and in the headline, and in no figure."""
    broken = _sample(TWO, 2, None, failed="rank 1 was killed")
    summary = _summary(_samples(ONE, 60, 60.1, 60.2), [*_samples(TWO, 112, 112.2), broken])
    two = _of(summary, TWO)
    assert two.items_per_s is not None
    assert two.items_per_s.n == 2
    assert two.samples[-1].failed == "rank 1 was killed"
    assert two.notes == ("1 of 3 samples failed",)
    assert summary.headline.endswith("5 of 6 planned samples count; 1 failed.")
    assert not summary.complete


def test_repeated_failure_is_mentioned_when_all_is_complete() -> None:
    """A sample that failed and was taken again leaves the study complete, and a word about it."""
    broken = _sample(TWO, 0, None, failed="a hiccup")
    summary = _summary(_samples(ONE, 60, 60.1, 60.2), [broken, *_samples(TWO, 111, 112, 113)])
    assert summary.complete
    assert summary.headline.endswith("1 failed sample was taken again.")


def test_without_a_baseline_no_speedup_is_told() -> None:
    """If every sample of the baseline failed, the others have figures but no comparison."""
    broken = [_sample(ONE, index, None, failed="no") for index in range(3)]
    summary = _summary(broken, _samples(TWO, 111, 112, 113))
    assert summary.headline.startswith("No speedup can be told: no sample of the baseline")
    assert _of(summary, TWO).speedup is None
    assert _of(summary, TWO).items_per_s is not None


def test_empty_and_beginning_studies() -> None:
    """Before the first sample, after the baseline only, and when all failed: each has its words."""
    assert _summary().headline == ("Nothing has been measured yet. 0 of 6 planned samples count.")
    assert _summary(_samples(ONE, 60, 60, 60)).headline.startswith(
        "1 process trains 60 img/s; nothing else has been measured."
    )
    broken = [_sample(ONE, 0, None, failed="no torch.\nTraceback")]
    assert _summary(broken).headline.startswith("Every sample failed, the first because: no torch.")


def test_baseline_is_one_by_definition() -> None:
    """The baseline's own speedup is exactly 1, without a made-up interval."""
    speedup = _of(_summary(_samples(ONE, 59, 60, 61)), ONE).speedup
    assert speedup is not None
    assert (speedup.mean, speedup.low, speedup.n) == (1.0, None, 3)


def test_epoch_times_are_compared_where_there_is_no_throughput() -> None:
    """Without items, the ratio of the epoch times is the other way round."""
    ones = [_sample(ONE, index, None, epoch_s=100.0 + index) for index in range(3)]
    twos = [_sample(TWO, index, None, epoch_s=50.0 + index) for index in range(3)]
    two = _of(_summary(ones, twos), TWO)
    assert two.basis == "epoch time"
    assert two.speedup is not None
    assert two.speedup.mean == pytest.approx(101 / 51)


def test_wall_time_is_the_last_resort_and_says_so() -> None:
    """A job measured from outside is compared by wall time, with its assumption in a note."""
    ones = [_sample(ONE, index, None, wall_s=100.0 + index) for index in range(3)]
    twos = [_sample(TWO, index, None, wall_s=60.0 + index) for index in range(3)]
    summary = _summary(ones, twos)
    two = _of(summary, TWO)
    assert two.basis == "wall time"
    assert "supposes the same work in total" in two.notes[0]
    assert "finish the job, start-up included, 1.66 times" in summary.headline


def test_wall_times_of_counted_iterations_are_not_compared() -> None:
    """20 iterations take as long on two processes: their wall times say nothing of scaling."""
    ones = [_sample(ONE, index, None, iteration_s=1.0) for index in range(3)]
    twos = [_sample(TWO, index, None, iteration_s=1.0) for index in range(3)]
    two = _of(_summary(ones, twos), TWO)
    assert (two.basis, two.speedup) == (None, None)
    assert "no figure in common" in two.notes[0]


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (Configuration(1, 2, 32), "batch 32 instead of 16"),
        (Configuration(1, 2, 16, (("bf16", True),)), "bf16 True instead of None"),
    ],
)
def test_unlike_configurations_are_compared_with_a_warning(
    other: Configuration, words: str
) -> None:
    """A speedup that includes the effect of another batch or argument says so."""
    summary = _summary(
        _samples(ONE, 60, 60.1, 60.2), _samples(other, 120, 121, 122), others=(other,)
    )
    assert words in _of(summary, other).notes[0]
    assert summary.headline.startswith(f"{other.title} trains 2.01 times as fast as {ONE.title}")


def test_like_configurations_lead_the_headline() -> None:
    """A faster batch of 32 does not take the place of the answer about processes."""
    wide = Configuration(1, 2, 32)
    summary = _summary(
        _samples(ONE, 60, 60.1, 60.2),
        _samples(TWO, 112, 112.1, 112.2),
        _samples(wide, 150, 150.1, 150.2),
        others=(TWO, wide),
    )
    assert summary.headline.startswith("2 processes train 1.87 times")


def test_arguments_of_every_type_are_kept_apart() -> None:
    """Configurations that differ in an argument alone are not mixed up."""
    values: list[ArgValue] = ["a", 1, 2.5]
    others = tuple(Configuration(1, 1, 16, (("mode", value),)) for value in values)
    groups = [_samples(item, 10.0 * index, 10.0 * index) for index, item in enumerate(others, 1)]
    summary = _summary(_samples(ONE, 60, 60), *groups, others=others)
    means = [item.items_per_s.mean for item in summary.configurations if item.items_per_s]
    assert means == [60, 10, 20, 30]


def test_real_ec2_epoch_times_scale_as_published() -> None:
    """The printed epoch times on 1, 2 and 4 t2.medium: 1.74 and 3.15 times as fast."""
    nodes = {1: 340.4, 2: 195.8, 4: 107.9}
    configurations = {count: Configuration(count, 1, 16) for count in nodes}
    groups = [
        [_sample(configurations[count], 0, None, epoch_s=seconds)]
        for count, seconds in nodes.items()
    ]
    summary = _summary(*groups, others=tuple(configurations.values())[1:], planned=1)
    found = [item.speedup.mean for item in summary.configurations if item.speedup]
    assert found == pytest.approx([1.0, 1.7385, 3.1548], abs=1e-4)
    assert "4 processes on 4 nodes finish an epoch 3.15 times" in summary.headline
    assert all(math.isfinite(value) for value in found)
