"""A study that never took place: deterministic, realistic, with a failed sample."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from paceline.events import End, Event, Iteration, Note, Start
from paceline.measure.samples import sample_from_events
from paceline.measure.scaling import summarise
from paceline.model.plan import Configuration, PlannedSample, StudyPlan
from paceline.model.record import Failure, RunRecord, RunState
from paceline.model.summary import Sample, StudySummary
from paceline.reporting.document import dumps

EXAMPLE = Path(__file__).parents[2] / "data" / "synthetic-study.json"
CLUSTER_EXAMPLE = EXAMPLE.with_name("synthetic-cluster-study.json")
WARMUP = 3
ITERATIONS = 23
IMAGES = 50_000
BEGIN = 1_760_000_000.0

# Seconds per iteration, as two processes on a two-core machine would have them.
TYPICAL_S = {(1, 16): 0.2664, (2, 16): 0.2866, (1, 32): 0.4981, (2, 32): 0.5302}
FAILED = ("nnode-1_nproc-2_batch_size-32", 2)

PROVENANCE = {
    "paceline": "0.1.0",
    "spec": {"name": "dcgan-on-a-laptop", "job": {"program": "dcgan", "launcher": "torchrun"}},
    "host": {
        "cpu": "AMD EPYC 7R13, 2 cores",
        "memory_gib": 7.6,
        "python": "3.11.7",
        "torch": "2.13.0+cpu",
        "environment": {"OMP_NUM_THREADS": "1"},
        "gpus": [],
    },
    "git": {"commit": "6c10585", "dirty": False},
}


def make_plan(name: str, configurations: list[Configuration], samples: int = 3) -> StudyPlan:
    """Return a plan whose first configuration is the baseline."""
    return StudyPlan(
        name=name,
        baseline=configurations[0],
        configurations=tuple(configurations),
        samples=tuple(
            PlannedSample(f"{item.label}-s{index}", item, index)
            for item in configurations
            for index in range(1, samples + 1)
        ),
        digest="0123456789ab",
    )


def make_sample(
    planned: PlannedSample,
    typical_s: float,
    dice: random.Random,
    *,
    fails: bool = False,
    usd_per_host_hour: float | None = None,
) -> Sample:
    """Make up a run of a configuration: a slow start, a drift of its own, a straggler."""
    configuration = planned.configuration
    own = typical_s * (1 + dice.gauss(0, 0.012))
    count = 9 if fails else ITERATIONS
    steps = [own * (1 + abs(dice.gauss(0, 0.02))) for _ in range(count)]
    steps[0] = own * 4.5
    steps[1] = own * 1.3
    if count > 17:
        steps[15] *= 1.25
    began = BEGIN + 40 * (planned.index * 10 + configuration.world_size)
    run = RunRecord(
        run_id=f"{planned.sample_id}-a0",
        kind="study",
        state=RunState.FAILED if fails else RunState.SUCCEEDED,
        configuration=configuration,
        folder=Path("run"),
        created_at=began,
        sample_id=planned.sample_id,
        sample_index=planned.index,
        started_at=began,
        wall_s=round(sum(steps) + 4.1 + dice.random(), 3),
        failure=Failure("rank 1 was killed by signal 9 (out of memory?)") if fails else None,
        hosts=("laptop",),
        provenance={}
        if usd_per_host_hour is None
        else {"price": {"usd_per_host_hour": usd_per_host_hour, "source": "list prices of a day"}},
    )
    world = range(configuration.world_size)
    events = {rank: _rank_events(rank, run, steps, dice, fails=fails) for rank in world}
    return sample_from_events(run, events, warmup=WARMUP)


def _rank_events(
    rank: int, run: RunRecord, steps: list[float], dice: random.Random, *, fails: bool
) -> list[Event]:
    clock = run.created_at
    made: list[Event] = [
        Start(rank=rank, t=clock, world_size=run.configuration.world_size, host="laptop"),
        Note(rank=rank, t=clock, text="generated images, because CIFAR-10 is not here"),
    ]
    for index, value in enumerate(steps):
        seconds = round(value * (1 + dice.gauss(0, 0.002)), 6)
        clock += seconds
        made.append(
            Iteration(
                rank=rank,
                t=clock,
                index=index,
                of=IMAGES // (run.configuration.global_batch_size or 1),
                seconds=seconds,
                items=run.configuration.batch_size,
                data_s=round(seconds * 0.01, 6),
                wait_s=round(seconds * 0.08, 6) if run.configuration.world_size > 1 else 0.0,
                metrics={"loss_d": round(1.4 - index * 0.02, 4)},
            )
        )
    if not fails:
        made.append(End(rank=rank, t=clock))
    return made


def make_study() -> StudySummary:
    """Return the study of 1 and 2 processes with batches of 16 and 32."""
    dice = random.Random(20)  # noqa: S311 - noise, not a secret
    plan = make_plan(
        "dcgan-on-a-laptop", [Configuration(1, procs, batch) for procs, batch in TYPICAL_S]
    )
    samples = []
    for planned in plan.samples:
        configuration = planned.configuration
        key = (configuration.procs_per_node, configuration.batch_size or 0)
        fails = (configuration.label, planned.index) == FAILED
        samples.append(make_sample(planned, TYPICAL_S[key], dice, fails=fails))
    return summarise(
        plan,
        samples,
        unit="img",
        data="generated images of CIFAR-10's shape",
        measured="20 iterations after 3 of warm-up",
        created_at=BEGIN,
        provenance=PROVENANCE,
    )


def make_cluster_study() -> StudySummary:
    """Return a study of 1, 2 and 4 nodes with 1, 2 and 4 processes each."""
    dice = random.Random(3)  # noqa: S311 - noise, not a secret
    layouts = [(1, 1), (1, 2), (1, 4), (2, 1), (2, 2), (2, 4), (4, 1), (4, 2), (4, 4)]
    plan = make_plan("dcgan-on-ec2", [Configuration(*layout, 16) for layout in layouts])
    samples = []
    for planned in plan.samples:
        nodes, procs = planned.configuration.nodes, planned.configuration.procs_per_node
        compute_s = 0.27 * max(1.0, procs / 2)
        typical_s = compute_s * (1 + 0.05 * (procs - 1)) + 0.06 * (nodes - 1) / nodes * 2
        samples.append(make_sample(planned, typical_s, dice, usd_per_host_hour=0.096))
    return summarise(
        plan,
        samples,
        unit="img",
        data="cifar10",
        measured="20 iterations after 3 of warm-up",
        created_at=BEGIN,
    )


def make_variants() -> dict[str, StudySummary]:
    """Return studies with little to show: each part of a report must bear the lack of it."""
    one, two = Configuration(1, 1), Configuration(1, 2)
    plan = make_plan("odd", [one, two], samples=2)
    walls = [
        Sample(item.sample_id, "r", item.configuration, item.index, 9.0 + item.index)
        for item in plan.samples
    ]
    epochs = [replace(sample, epoch_s=8.0 + sample.index) for sample in walls]
    failed = [replace(sample, failed="no torch", wall_s=None) for sample in walls]
    samples: dict[str, list[Sample]] = {
        "nothing yet": [],
        "baseline only": walls[:1],
        "one sample each": [walls[0], walls[2]],
        "wall times": walls,
        "epochs": epochs,
        "all failed": failed,
        "baseline failed": [*failed[:2], *epochs[2:]],
    }
    return {
        name: summarise(plan, some, unit="items", data="", measured="", created_at=BEGIN)
        for name, some in samples.items()
    }


@pytest.fixture(scope="session", params=make_variants())
def variant(request: pytest.FixtureRequest) -> StudySummary:
    """One of the studies with little to show."""
    return make_variants()[request.param]


@pytest.fixture(scope="session")
def study() -> StudySummary:
    """A small study with a failed sample."""
    return make_study()


@pytest.fixture(scope="session")
def cluster_study() -> StudySummary:
    """A study over nodes and processes."""
    return make_cluster_study()


if __name__ == "__main__":
    EXAMPLE.write_text(dumps(make_study()), encoding="utf-8")
    CLUSTER_EXAMPLE.write_text(dumps(make_cluster_study()), encoding="utf-8")
