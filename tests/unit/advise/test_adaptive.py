"""A study that takes only the samples that its answer needs: simulated on published runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from paceline.advise.adaptive import next_step
from paceline.advise.choosing import MARGIN, Goal, Limits, choose, money_of, time_of
from paceline.advise.nouns import Launch, Machine
from paceline.advise.options import Evidence, Option, options_of
from paceline.advise.priors import Priors
from paceline.model.plan import Configuration, PlannedSample, StudyPlan
from paceline.model.summary import RankSample, Sample
from paceline.planning.study import in_rounds

ROUNDS = 3
MEASURED = 20


def configuration_of(launch: Launch) -> Configuration:
    """Return a launch's target as a configuration of a study."""
    target = launch.target
    return Configuration(
        target.nodes,
        target.procs_per_node,
        target.batch_size,
        instance_type=target.instance_type,
    )


def sample_of(launch: Launch, planned: PlannedSample) -> Sample:
    """Return the n-th sample of a launch: each takes another stretch of its iterations."""
    epoch = launch.epochs[min(planned.index - 1, len(launch.epochs) - 1)]
    times = list(epoch.seconds.values())
    begin = max(0, min(3 + (planned.index - 1) * MEASURED, len(times) - 1 - MEASURED))
    rank = RankSample(
        rank=0,
        host="a",
        warmup_s=tuple(times[:3]),
        iteration_s=tuple(times[begin + (not begin) * 3 :][:MEASURED]),
        iterations_per_epoch=epoch.planned,
    )
    return Sample(
        planned.sample_id, planned.sample_id, planned.configuration, planned.index,
        wall_s=sum(times[: MEASURED + 3]) + 10.0, ranks=(rank,),
    )  # fmt: skip


def plan_of(launches: Sequence[Launch]) -> StudyPlan:
    """Return the full grid over these launches."""
    grid = tuple(configuration_of(launch) for launch in launches)
    return StudyPlan("s", grid[0], grid, in_rounds(grid, ROUNDS, seed=0), "d")


def taken_adaptively(
    plan: StudyPlan, all_samples: Mapping[str, Sample], machines: Mapping[str, Machine]
) -> list[Sample]:
    """Return the samples that an adaptive study takes, in its order."""
    taken: list[Sample] = []
    while True:
        have = {sample.sample_id for sample in taken}
        missing = [item for item in plan.samples if item.sample_id not in have]
        # What is known of the types beforehand was read off these very runs: it stays out.
        evidence = Evidence(taken, machines=machines, priors=Priors(types=False))
        step = next_step(plan, missing, evidence)
        if step.sample is None:
            return taken
        taken.append(all_samples[step.sample.sample_id])


@pytest.mark.parametrize("study", ["A", "B", "C", "D"])
def test_half_of_the_grid_gives_the_same_answer(
    published: tuple[Launch, ...], machines: Mapping[str, Machine], study: str
) -> None:
    """Cheapest and fastest are those of the full grid, or within the margin by its figures."""
    launches = [replace(item, study="") for item in published if item.study == study]
    plan = plan_of(launches)
    of = {configuration_of(launch): launch for launch in launches}
    samples = {item.sample_id: sample_of(of[item.configuration], item) for item in plan.samples}
    taken = taken_adaptively(plan, samples, machines)
    assert len(taken) <= len(plan.samples) / 2
    full = options_of(Evidence(list(samples.values()), machines=machines), plan.configurations)
    few = options_of(Evidence(taken, machines=machines), plan.configurations)
    for goal in ("cheapest", "fastest"):
        best, chosen = (_leader(goal, options) for options in (full, few))
        figure = money_of if goal == "cheapest" else time_of
        same = next(item for item in full if item.configuration == chosen.configuration)
        excess = (figure(same) or 0.0) / (figure(best) or 1.0) - 1
        assert chosen.measured
        assert excess <= MARGIN


def _leader(goal: Goal, options: Sequence[Option]) -> Option:
    found = choose(goal, options, Limits())
    assert found is not None
    return found.option
