"""What is odd is named, and nothing that is not."""

from __future__ import annotations

import random

from paceline.measure.oddities import bursts, outlying_runs, stragglers
from paceline.measure.scaling import summarise
from paceline.model.plan import Configuration, PlannedSample, StudyPlan
from paceline.model.summary import RankSample, Sample

TWO = Configuration(1, 2, 16)


def sample(*ranks: RankSample, index: int = 1, rate: float | None = None) -> Sample:
    """Return a sample of two processes with these ranks."""
    return Sample(f"s{index}", f"r{index}", TWO, index, 30.0, ranks=ranks, items_per_s=rate)


def rank(number: int, times: list[float], waited: float = 0.0, host: str = "") -> RankSample:
    """Return a rank with three iterations of warm-up, and these after them."""
    return RankSample(
        rank=number,
        host=host,
        iteration_s=tuple(times),
        warmup_s=(1.0, 1.0, 1.0),
        data_s=0.0,
        wait_s=waited,
    )


def test_a_burst_is_named_by_its_iterations_and_height() -> None:
    """Slow neighbours are a burst; their numbers count the warm-up, as the timeline does."""
    times = [0.1] * 10 + [0.2] * 4 + [0.1] * 6
    found = bursts(sample(rank(0, times), rank(1, times), index=2))
    assert found == ("sample 2: iterations 14 to 17 took 2.00 times the median (a burst)",)


def test_many_bursts_are_one_sentence() -> None:
    """On a busy machine they are counted; only the costliest is named by its iterations."""
    times = ([0.1] * 10 + [0.2] * 5) * 2 + [0.1] * 10 + [0.4] * 5 + [0.1] * 10
    found = bursts(sample(rank(0, times)))
    expected = "sample 1: 3 bursts, 50% of its time; iterations 44 to 48 took 4.00 times the median"
    assert found == (expected,)


def test_single_slow_iterations_are_no_burst() -> None:
    """A hiccup here and there is noise."""
    times = [0.1, 0.3] + [0.1] * 8 + [0.3, 0.1] * 2
    assert bursts(sample(rank(0, times))) == ()


def test_noise_is_no_burst() -> None:
    """Iterations that vary by a few percent have none."""
    dice = random.Random(1)  # noqa: S311 - noise, not a secret
    times = [0.1 * (1 + dice.gauss(0, 0.03)) for _ in range(500)]
    assert bursts(sample(rank(0, times))) == ()


def test_a_straggler_is_who_the_others_wait_for() -> None:
    """All iterations last equally long; the straggler is busy while the other waits."""
    slow, quick = rank(0, [0.2] * 10, 0.0, "b"), rank(1, [0.2] * 10, 0.8, "a")
    (found,) = stragglers(sample(slow, quick, index=3))
    assert found.startswith("sample 3: rank 0 on b is a straggler")
    assert "1.67 times as long as the others" in found


def test_equal_ranks_and_lone_ones_have_no_straggler() -> None:
    """Who is alone, or like the others, keeps nobody waiting."""
    assert stragglers(sample(rank(0, [0.2] * 9, 0.1), rank(1, [0.2] * 9, 0.2))) == ()
    assert stragglers(sample(rank(0, [0.2] * 9))) == ()


def test_an_outlying_run_is_named_and_counts() -> None:
    """Its throughput stays in the mean; a sentence says that it is unlike the others."""
    rates = [100.0, 101.0, 100.5, 99.5, 60.0]
    found = [sample(index=index, rate=rate) for index, rate in enumerate(rates, start=1)]
    (sentence,) = outlying_runs(found)
    assert "its throughput is 0.60 times the median of the others" in sentence
    plan = StudyPlan(
        "s", TWO, (TWO,), tuple(PlannedSample(f"s{one.index}", TWO, one.index) for one in found), ""
    )
    made = summarise(plan, found, unit="img", data="", measured="", created_at=0.0)
    (item,) = made.configurations
    assert item.items_per_s is not None
    assert item.items_per_s.n == 5
    assert any("sample 5 is an outlier" in note for note in item.notes)


def test_a_run_that_is_hardly_different_is_not_named() -> None:
    """On a very quiet machine a percent is far away, and changes nothing."""
    rates = [100.0, 100.01, 100.02, 99.99, 101.0]
    assert outlying_runs([sample(index=index, rate=rate) for index, rate in enumerate(rates)]) == ()
