"""The demo's spec."""

from __future__ import annotations

import pytest

from paceline.model.host import HostFacts
from paceline.model.spec import load_spec
from paceline.planning.demo import DEMO_ITERATIONS, DEMO_SAMPLES, demo_mapping
from paceline.planning.study import plan_study


@pytest.mark.parametrize(
    ("cores", "procs"), [(1, [1]), (2, [1, 2]), (6, [1, 2, 4, 6]), (8, [1, 2, 4, 8])]
)
def test_the_demo_is_a_small_study_of_this_machine(cores: int, procs: list[int]) -> None:
    """One process first, then more up to the cores, a few samples of iterations each."""
    spec = load_spec(demo_mapping(cores, None))
    plan = plan_study(spec, (HostFacts("here", cores),))
    assert [item.procs_per_node for item in plan.configurations] == procs
    assert {item.batch_size for item in plan.configurations} == {16}
    assert len(plan.samples) == DEMO_SAMPLES * len(procs)
    assert (spec.measurement.kind, spec.measurement.amount) == ("iterations", DEMO_ITERATIONS)
    assert (spec.job.program, spec.data.dataset, spec.name) == ("dcgan", "fake", "demo-fake")


def test_the_demo_takes_real_images_where_they_are() -> None:
    """CIFAR-10 that is there already is used."""
    spec = load_spec(demo_mapping(2, "/data/cifar10"))
    assert (spec.data.dataset, spec.data.root) == ("cifar10", "/data/cifar10")
