"""A study as data: configurations, samples and their order."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.errors import PlanError
from paceline.model.host import HostFacts
from paceline.model.plan import Configuration, StudyPlan
from paceline.model.spec import load_spec
from paceline.planning.study import (
    baseline_of,
    in_rounds,
    plan_study,
    study_digest,
    training_configuration,
)
from paceline.planning.variant import variant_of


def hosts(*cores: int) -> tuple[HostFacts, ...]:
    """Return facts of hosts with so many cores each."""
    return tuple(HostFacts(hostname=f"h{index}", cores=count) for index, count in enumerate(cores))


def planned(data: dict[str, Any], *cores: int) -> StudyPlan:
    """Return the plan of a spec on hosts with so many cores each."""
    return plan_study(load_spec(data), hosts(*(cores or (4,))))


def labels(plan: StudyPlan) -> list[str]:
    """Return the configurations of a plan by their labels."""
    return [item.label for item in plan.configurations]


@pytest.mark.parametrize(
    ("cores", "procs"),
    [(1, [1]), (2, [1, 2]), (3, [1, 2, 3]), (4, [1, 2, 4]), (6, [1, 2, 4, 6]), (8, [1, 2, 4, 8])],
)
def test_the_default_grid_doubles_up_to_the_cores(cores: int, procs: list[int]) -> None:
    """Powers of two, and the cores themselves."""
    assert labels(planned({}, cores)) == [f"nnode-1_nproc-{count}" for count in procs]


def test_the_default_grid_uses_all_hosts() -> None:
    """With several hosts the nodes double as well, up to the cores of the smallest host."""
    assert labels(planned({}, 4, 2, 4)) == [
        f"nnode-{nodes}_nproc-{procs}" for nodes in (1, 2, 3) for procs in (1, 2)
    ]


def test_a_grid_is_every_combination_of_its_values() -> None:
    """The baseline comes first; the grid follows in the order in which it is written."""
    plan = planned(
        {
            "job": {"args": {"batch_size": 16}},
            "study": {"grid": {"nodes": [2], "procs_per_node": [1, 2], "batch_size": [16, 32]}},
        },
        4,
        4,
    )
    assert labels(plan) == [
        "nnode-1_nproc-1_batch_size-16",
        "nnode-2_nproc-1_batch_size-16",
        "nnode-2_nproc-1_batch_size-32",
        "nnode-2_nproc-2_batch_size-16",
        "nnode-2_nproc-2_batch_size-32",
    ]
    assert plan.baseline == plan.configurations[0]


def test_what_the_grid_leaves_open_is_the_jobs() -> None:
    """An axis that the grid does not have stands at the job's value."""
    plan = planned({"job": {"procs_per_node": 2}, "study": {"grid": {"batch_size": [8, 9]}}})
    assert labels(plan) == [
        "nnode-1_nproc-1",
        "nnode-1_nproc-2_batch_size-8",
        "nnode-1_nproc-2_batch_size-9",
    ]


def test_an_argument_of_the_job_can_be_an_axis() -> None:
    """The baseline has the job's own value of it, and is not measured twice."""
    plan = planned(
        {"job": {"args": {"lr": 0.1}}, "study": {"grid": {"lr": [0.1, 0.2], "fast": [True]}}}
    )
    assert plan.baseline == Configuration(1, 1, args=(("lr", 0.1),))
    assert labels(plan) == [
        "nnode-1_nproc-1_lr-0.1",
        "nnode-1_nproc-1_lr-0.1_fast-True",
        "nnode-1_nproc-1_lr-0.2_fast-True",
    ]


def test_labels_are_fit_for_file_names() -> None:
    """A path as a value makes no folder."""
    plan = planned({"study": {"grid": {"mode": ["a/b", "a b"]}}})
    assert labels(plan)[1:] == ["nnode-1_nproc-1_mode-a%2Fb", "nnode-1_nproc-1_mode-a%20b"]


def test_a_grid_point_that_is_the_baseline_is_measured_once() -> None:
    """Equal points and repeated values count once, where they first stand."""
    plan = planned({"study": {"grid": {"procs_per_node": [2, 1, 2]}}})
    assert labels(plan) == ["nnode-1_nproc-1", "nnode-1_nproc-2"]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ({}, Configuration(1, 1)),
        ({"study": {"grid": {"batch_size": [16]}}}, Configuration(1, 1, 16)),
        ({"study": {"grid": {"batch_size": [16, 32]}}}, Configuration(1, 1)),
        (
            {"job": {"args": {"batch_size": 8}}, "study": {"grid": {"batch_size": [16]}}},
            Configuration(1, 1, 8),
        ),
        (
            {
                "job": {"args": {"batch_size": 8, "lr": 1}},
                "study": {"baseline": {"procs_per_node": 2, "batch_size": 4, "args": {"lr": 2}}},
            },
            Configuration(1, 2, 4, (("lr", 2),)),
        ),
    ],
)
def test_the_baseline_compares_like_with_like(
    data: dict[str, Any], expected: Configuration
) -> None:
    """Its batch size is its own, else the job's, else the only one there is."""
    assert baseline_of(load_spec(data)) == expected


def test_all_that_does_not_fit_is_named_at_once() -> None:
    """Every point that the hosts cannot carry is said with what is there, and the ways out."""
    data = {"study": {"grid": {"nodes": [1, 3], "procs_per_node": [2, 4]}}}
    with pytest.raises(PlanError) as caught:
        planned(data, 4, 2)
    assert str(caught.value) == (
        "what is asked for does not fit onto the hosts:\n"
        "  3 nodes x 2 processes: needs 3 hosts, and there are 2 hosts\n"
        "  3 nodes x 4 processes: needs 3 hosts, and there are 2 hosts\n"
        "  3 nodes x 4 processes: needs 4 cores on each host, and h1 has 2 cores"
    )
    assert caught.value.hint == (
        "ask for fewer nodes; lower procs_per_node, or set `job.oversubscribe: true` to let "
        "processes share cores (the figures then say little about scaling)"
    )
    assert caught.value.exit_code == 4


def test_oversubscribing_is_allowed_on_request_and_noted() -> None:
    """More processes than cores are planned where the spec says so; nodes cannot be invented."""
    data = {"job": {"oversubscribe": True}, "study": {"grid": {"procs_per_node": [4]}}}
    assert planned(data, 2).notes == (
        "1 node x 4 processes: more processes than cores; they take turns",
    )
    with pytest.raises(PlanError, match="needs 2 hosts, and there is 1 host"):
        planned({**data, "study": {"grid": {"nodes": [2]}}}, 2)


def test_the_baseline_must_fit_as_well() -> None:
    """A baseline that is too large is refused like a grid point."""
    with pytest.raises(PlanError, match="1 node x 9 processes: needs 9 cores"):
        planned({"study": {"baseline": {"procs_per_node": 9}, "grid": {"procs_per_node": [1]}}})


def test_training_runs_what_the_job_says() -> None:
    """`train` takes nodes, processes and batch size from the job, and checks that they fit."""
    spec = load_spec({"job": {"procs_per_node": 2, "args": {"batch_size": 16}}})
    assert training_configuration(spec, hosts(2)) == Configuration(1, 2, 16)
    with pytest.raises(PlanError, match="needs 2 cores on each host, and h0 has 1 core"):
        training_configuration(spec, hosts(1))


grids = st.fixed_dictionaries(
    {},
    optional={
        "nodes": st.lists(st.integers(1, 3), min_size=1, max_size=3),
        "procs_per_node": st.lists(st.integers(1, 4), min_size=1, max_size=3),
        "batch_size": st.lists(st.integers(1, 64), min_size=1, max_size=3),
        "learning": st.lists(st.sampled_from(["a", "b/c", 1.5, 2]), min_size=1, max_size=3),
    },
).filter(bool)


@settings(deadline=None)
@given(grid=grids, samples=st.integers(1, 4), seed=st.integers(0, 99))
def test_every_sample_is_taken_once_in_complete_rounds(
    grid: dict[str, list[Any]], samples: int, seed: int
) -> None:
    """The plan holds each combination, each sample once, and round after round is complete."""
    data = {"study": {"grid": grid, "samples": samples, "seed": seed}}
    plan = planned(data, 4, 4, 4)
    assert planned(data, 4, 4, 4) == plan

    configurations = set(plan.configurations)
    assert len(configurations) == len(plan.configurations)
    points = 1
    for values in grid.values():
        points *= len({str(value) for value in values})
    assert points <= len(configurations) <= points + 1

    ids = [item.sample_id for item in plan.samples]
    assert len(set(ids)) == len(ids) == samples * len(configurations)
    assert all("/" not in sample_id for sample_id in ids)
    for number in range(samples):
        size = len(configurations)
        taken = plan.samples[number * size : (number + 1) * size]
        assert Counter(item.configuration for item in taken) == Counter(configurations)
        assert {item.index for item in taken} == {number + 1}
        assert all(item.sample_id == f"{item.configuration.label}-s{number + 1}" for item in taken)


def test_the_order_differs_between_rounds_and_seeds() -> None:
    """Rounds are shuffled anew, and another seed shuffles differently."""

    def orders(seed: int) -> list[tuple[str, ...]]:
        grid = {"batch_size": list(range(1, 9))}
        plan = planned({"study": {"grid": grid, "samples": 3, "seed": seed}})
        size = len(plan.configurations)
        ids = [item.configuration.label for item in plan.samples]
        return [tuple(ids[start : start + size]) for start in range(0, len(ids), size)]

    assert len(set(orders(0))) == 3
    assert orders(0) != orders(1)


def test_an_extended_study_keeps_its_order() -> None:
    """More samples follow after those there were; new points do not turn the old ones around."""
    small = planned({"study": {"grid": {"batch_size": [1, 2, 3]}, "samples": 2}})
    longer = planned({"study": {"grid": {"batch_size": [1, 2, 3]}, "samples": 4}})
    assert longer.samples[: len(small.samples)] == small.samples
    wider = planned({"study": {"grid": {"batch_size": [1, 2, 3, 4, 5]}, "samples": 2}})
    known = {item.sample_id for item in small.samples}
    assert [item for item in wider.samples if item.sample_id in known] == list(small.samples)


BASE: dict[str, Any] = {
    "name": "a",
    "data": {"dataset": "fake"},
    "job": {"program": "dcgan", "args": {"lr": 1}},
    "study": {"samples": 3, "iterations": 5},
}


def changed(section: str, **values: Any) -> dict[str, Any]:
    """Return the base spec with some values of a section changed."""
    return {**BASE, section: {**BASE.get(section, {}), **values}}


@pytest.mark.parametrize(
    "data",
    [
        changed("study", samples=9),
        changed("study", grid={"procs_per_node": [1, 2]}),
        changed("study", baseline={"procs_per_node": 2}),
        changed("study", seed=7),
        changed("job", procs_per_node=2),
        changed("job", timeout="1h"),
        changed("job", oversubscribe=True),
        changed("job", master_port=1234),
        changed("job", env={}),
        changed("data", download=True),
        changed("cluster", nodes=2),
        changed("limits", retries=5),
        {**BASE, "name": "b"},
    ],
)
def test_what_does_not_change_a_measurement_keeps_the_digest(data: dict[str, Any]) -> None:
    """Such a study can be extended."""
    assert study_digest(load_spec(data)) == study_digest(load_spec(BASE))


@pytest.mark.parametrize(
    "data",
    [
        changed("study", iterations=6),
        changed("study", warmup=1),
        changed("job", program="mlp"),
        changed("job", args={"lr": 2}),
        changed("job", launcher="torchrun"),
        changed("job", threads=1),
        changed("job", env={"A": "1"}),
        changed("data", dataset="cifar10"),
        changed("runtime", env={"A": "1"}),
    ],
)
def test_what_changes_a_measurement_changes_the_digest(data: dict[str, Any]) -> None:
    """Such a study is another study."""
    assert study_digest(load_spec(data)) != study_digest(load_spec(BASE))


def test_a_secret_does_not_enter_the_digest() -> None:
    """A digest cannot be used to guess a secret, and a new token does not end a study."""
    one, other = (load_spec(changed("job", env={"HF_TOKEN": word})) for word in ("a", "b"))
    assert study_digest(one) == study_digest(other)


STRONG: dict[str, Any] = {
    "job": {"args": {"batch_size": 16}},
    "study": {"scaling": "strong", "grid": {"procs_per_node": [1, 2, 4]}},
}


def test_strong_scaling_shares_out_the_baselines_batch() -> None:
    """All processes together have the batch of the baseline, in each configuration."""
    plan = planned(STRONG)
    assert [item.batch_size for item in plan.configurations] == [16, 8, 4]
    assert {item.global_batch_size for item in plan.configurations} == {16}


def test_a_global_batch_is_an_axis() -> None:
    """Each value is split among the processes; the baseline has the first."""
    grid = {"global_batch_size": [32, 64], "procs_per_node": [1, 4]}
    plan = planned({"study": {"grid": grid}})
    assert plan.baseline == Configuration(1, 1, 32)
    assert [(item.procs_per_node, item.batch_size) for item in plan.configurations] == [
        (1, 32),
        (1, 64),
        (4, 8),
        (4, 16),
    ]


def test_a_batch_that_cannot_be_split_is_named() -> None:
    """A share that is no whole number would make another job of it."""
    spec = {**STRONG, "study": {"scaling": "strong", "grid": {"procs_per_node": [2, 3]}}}
    with pytest.raises(PlanError, match="1 node x 3 processes: 16 is no multiple of 3"):
        planned(spec)


def test_strong_scaling_needs_a_batch() -> None:
    """What is not known cannot be split."""
    with pytest.raises(PlanError, match="no batch size is given"):
        planned({"study": {"scaling": "strong"}})


def test_a_launcher_can_be_an_axis() -> None:
    """The baseline has the job's own; each run's plan follows the configuration's."""
    plan = planned({"study": {"grid": {"launcher": ["direct", "torchrun"]}}})
    assert labels(plan) == ["nnode-1_nproc-1_launcher-direct", "nnode-1_nproc-1_launcher-torchrun"]
    spec = load_spec({"study": {"grid": {"launcher": ["direct", "torchrun"]}}})
    assert [variant_of(spec, item).job.launcher for item in plan.configurations] == [
        "direct",
        "torchrun",
    ]
    assert variant_of(spec, Configuration(1, 1)) is spec


def test_samples_of_one_instance_type_stay_together() -> None:
    """Hosts of a type are rented once, and rounds are taken within it."""
    small, large = Configuration(1, 1, instance_type="small"), Configuration(1, 1)
    found = in_rounds((large, replace(small, procs_per_node=2), small), 2, seed=0)
    assert [item.configuration.instance_type for item in found] == [None] * 2 + ["small"] * 4
    assert [item.index for item in found] == [1, 2, 1, 1, 2, 2]
