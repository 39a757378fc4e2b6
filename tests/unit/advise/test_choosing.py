"""Choosing among options: cheapest, fastest, within limits, and how sure that is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from paceline.advise.advice import advise, neighbours
from paceline.advise.choosing import Limits, choose, front_of, surer_with
from paceline.advise.nouns import Machine, Prediction, Target
from paceline.advise.options import Evidence, Option, Span, options_of
from paceline.advise.words import grid_with, nothing_within, reason_of, settings_of, surer_words
from paceline.model.plan import Configuration
from paceline.model.summary import RankSample, Sample


def option(nodes: int, time_s: float, cost: float | None, doubt: float = 0.01) -> Option:
    """Return an option with these figures, each within 10%."""
    target = Target("m5.large", nodes, 1, 16)
    hours = nodes * time_s / 3600
    return Option(
        Configuration(nodes, 1, 16),
        Prediction(target, basis="measured", epoch_s=time_s, iteration_s=1.0, doubt=doubt),
        measured=1,
        time_s=Span(time_s, 0.9 * time_s, 1.1 * time_s),
        host_hours=Span(hours, 0.9 * hours, 1.1 * hours),
        cost_usd=None if cost is None else Span(cost, 0.9 * cost, 1.1 * cost),
    )


SLOW, MIDDLE, FAST = option(1, 400.0, 1.0), option(2, 220.0, 1.1), option(4, 130.0, 1.3)
ALL = (SLOW, MIDDLE, FAST)


def test_cheapest_and_fastest_are_different_questions() -> None:
    """One host is the cheapest, four are the fastest, and both are clear."""
    for goal, wanted in (("cheapest", SLOW), ("fastest", FAST)):
        found = choose(goal, ALL, Limits())  # type: ignore[arg-type]
        assert found is not None
        assert found.option == wanted
        assert found.clear
        assert found.ties == ()


def test_within_a_deadline_the_cheapest_counts_and_within_a_budget_the_fastest() -> None:
    """A limit has to hold at the far end of the interval."""
    deadline = choose("best", ALL, Limits(deadline_s=300.0))
    budget = choose("best", ALL, Limits(budget_usd=1.25))
    assert deadline is not None
    assert deadline.option == MIDDLE
    assert budget is not None
    assert budget.option == MIDDLE
    assert budget.kept


def test_a_limit_that_holds_only_on_average_is_said() -> None:
    """130 s and up to 143: within 135 s perhaps, and that is what the words say."""
    found = choose("best", ALL, Limits(deadline_s=135.0))
    assert found is not None
    assert found.option == FAST
    assert not found.kept
    advice = advise(Evidence([]), ())
    assert "may not hold" in reason_of(found, advice)


def test_nothing_within_the_limits_is_an_answer() -> None:
    """Nobody is proposed who does not keep within them."""
    limits = Limits(budget_usd=0.5, deadline_s=60.0)
    assert choose("best", ALL, limits) is None
    assert nothing_within(limits) == "Nothing that is known keeps within 60 s and 0.5 USD."


def test_what_cannot_be_told_apart_is_a_tie() -> None:
    """Two options 1% apart with 5% of doubt each: a tie, and one of them is to be measured."""
    near = replace(option(2, 131.0, 1.31, doubt=0.08))
    found = choose("fastest", (replace(FAST, prediction=near.prediction), near, SLOW), Limits())
    assert found is not None
    assert found.ties == (near,)
    assert not found.clear
    assert surer_with([found], (FAST, near, SLOW)) == near


def test_the_front_holds_what_nothing_beats_in_both() -> None:
    """What is slower and dearer than another is not on it."""
    worse = option(8, 500.0, 2.0)
    assert front_of((*ALL, worse)) == (FAST, MIDDLE, SLOW)


def test_host_hours_stand_in_for_money_that_nobody_knows() -> None:
    """Without prices, the cheapest is what keeps hosts busy for the shortest time."""
    found = choose("cheapest", [option(1, 400.0, None), option(4, 90.0, None)], Limits())
    assert found is not None
    assert found.option.configuration.nodes == 4


def sample(nodes: int, seconds: float, index: int = 1, wall_s: float = 40.0) -> Sample:
    """Return a sample of 20 equal iterations out of 1,000 / nodes of an epoch."""
    rank = RankSample(
        0, "a", warmup_s=(seconds,) * 3, iteration_s=(seconds,) * 17,
        iterations_per_epoch=1000 // nodes,
    )  # fmt: skip
    return Sample(
        f"s{nodes}", f"r{nodes}-{index}", Configuration(nodes, 1, 16), index, wall_s, (rank,)
    )


def test_a_study_predicts_what_it_did_not_measure() -> None:
    """One and two hosts, measured; four, predicted: time, start included, and cost."""
    evidence = Evidence(
        [sample(1, 1.0), sample(2, 1.1)],
        instance_type="m5.large",
        machines={"m5.large": Machine("m5.large", 2, 0.096)},
    )
    found = options_of(evidence, [Configuration(nodes, 1, 16) for nodes in (1, 2, 4)], epochs=2)
    assert [item.prediction.basis for item in found] == ["probe", "probe", "scaled"]
    assert found[0].time_s is not None
    assert found[0].time_s.value == pytest.approx(2 * 1000 + (40 - 20 + 40 - 22) / 2)
    assert found[2].cost_usd is not None
    assert found[2].time_s is not None
    assert found[2].cost_usd.value == pytest.approx(4 * 0.096 * found[2].time_s.value / 3600)


def test_a_job_measured_from_outside_is_compared_by_its_wall_time() -> None:
    """No iterations: nothing is predicted, and what was measured is still advised upon."""
    samples = [
        replace(sample(nodes, 1.0, wall_s=wall), ranks=()) for nodes, wall in ((1, 90), (2, 50))
    ]
    grid = [Configuration(nodes, 1, 16) for nodes in (1, 2, 4)]
    advice = advise(Evidence(samples), grid)
    fastest = advice.choice("fastest")
    assert fastest is not None
    assert fastest.option.configuration.nodes == 2
    unknown = next(item for item in advice.options if item.configuration.nodes == 4)
    assert unknown.time_s is None
    assert "not measured" in (unknown.prediction.reason or "")


def test_words_name_the_reason_and_what_to_set() -> None:
    """What acts on advice are settings of the spec; what is not planned is added to the grid."""
    evidence = Evidence([sample(1, 1.0), sample(2, 1.1)], instance_type="m5.large")
    advice = advise(evidence, [Configuration(nodes, 1, 16) for nodes in (1, 2, 4)])
    fastest = advice.choice("fastest")
    assert fastest is not None
    words = reason_of(fastest, advice)
    assert "predicted by scaling" in words
    assert "host-hours" in words
    assert settings_of(fastest.option) == (
        "cluster.nodes=4", "job.procs_per_node=1", "job.args.batch_size=16",
    )  # fmt: skip
    known = [Configuration(1, 1, 16), Configuration(2, 1, 16)]
    assert "study.grid.nodes=[1, 2, 4]" in grid_with(fastest.option, known)
    assert surer_words(replace(advice, next=fastest.option)) == (
        "To be surer, measure 4 nodes x 1 process, batch 16: it is in the race, not measured yet, "
        f"and known to within {fastest.option.doubt:.0%} only."
    )


def test_neighbours_reach_to_twice_what_is_known_within_what_there_is() -> None:
    """Twice the hosts, no more processes than cores, and in strong scaling the batch is shared."""
    known = [Configuration(1, 1, 16), Configuration(2, 1, 16)]
    assert {item.nodes for item in neighbours(known, most_procs=1)} == {1, 2, 4}
    assert {item.nodes for item in neighbours(known, most_nodes=2, most_procs=1)} == {1, 2}
    shared = [Configuration(1, 1, 16), Configuration(2, 1, 8)]
    strong = neighbours(shared, strong=True)
    assert {(item.nodes, item.batch_size) for item in strong} == {(1, 16), (2, 8), (4, 4)}
    assert neighbours([Configuration(1, 1, 16)]) == (Configuration(1, 1, 16),)
