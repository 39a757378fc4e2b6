"""The model of an iteration: physical constants, fitted to medians."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.advise.nouns import Target
from paceline.advise.priors import Priors
from paceline.advise.scaling import Model, Point, fit

TRUE = Model(
    fixed_s=0.1, item_s=0.04, step_s=0.01, bytes_s=0.3, procs_exponent=0.5, within_host=0.3
)
PRIORS = Priors()


def target(nodes: int = 1, procs: int = 1, batch: int = 32) -> Target:
    """Return a target of a type that nothing is assumed of."""
    return Target("moon.large", nodes, procs, batch)


def exact(*targets: Target, model: Model = TRUE) -> list[Point]:
    """Return the points that a model makes, without noise."""
    return [Point(item, item.batch_size, model.iteration_s(item)) for item in targets]


def test_enough_measurements_give_the_constants_back() -> None:
    """Hosts, processes and batches that differ leave nothing to assumptions."""
    shapes = [(1, 1, 16), (1, 1, 64), (2, 1, 16), (4, 1, 64), (8, 1, 32), (2, 2, 32), (1, 4, 16)]
    found = fit(exact(*(target(*shape) for shape in shapes)), PRIORS)
    assert found.procs_exponent == 0.5
    for name in ("fixed_s", "item_s", "step_s", "bytes_s"):
        assert getattr(found, name) == pytest.approx(getattr(TRUE, name), rel=0.02)


def test_one_and_two_hosts_tell_of_four() -> None:
    """Without steps, an all-reduce of four hosts carries one and a half times that of two."""
    no_steps = replace(TRUE, step_s=0.0)
    found = fit(exact(target(1), target(2), model=no_steps), PRIORS)
    assert found.iteration_s(target(4)) == pytest.approx(no_steps.iteration_s(target(4)), rel=0.01)


def test_a_partial_batch_tells_of_other_batches() -> None:
    """The last batch of an epoch is a measurement of a small batch."""
    known = target(2)
    points = [*exact(known), Point(known, 8, TRUE.iteration_s(known, 8), 0.2)]
    found = fit(points, PRIORS)
    other = target(2, batch=16)
    assert found.iteration_s(other) == pytest.approx(TRUE.iteration_s(other), rel=0.02)


SECONDS = st.floats(0.01, 100.0)


@given(
    st.lists(
        st.tuples(st.integers(1, 16), st.integers(1, 8), st.integers(1, 256), SECONDS),
        min_size=1,
        max_size=6,
    )
)
def test_no_measurements_make_it_senseless(rows: list[tuple[int, int, int, float]]) -> None:
    """Whatever was measured: nothing is negative, and more work never takes less time."""
    points = [Point(target(*shape), shape[2], seconds) for *shape, seconds in rows]
    found = fit(points, PRIORS)
    assert min(found.fixed_s, found.item_s, found.step_s, found.bytes_s) >= 0
    for nodes, procs, batch in ((1, 1, 8), (3, 2, 64), (40, 4, 500)):
        here = found.iteration_s(target(nodes, procs, batch))
        assert here > 0
        assert found.iteration_s(target(nodes, procs, batch * 2)) >= here
        assert found.iteration_s(target(nodes + 1, procs, batch)) >= here
        assert found.iteration_s(target(nodes, procs + 1, batch)) >= here


@given(st.floats(0.01, 100.0))
def test_the_unit_of_time_means_nothing(factor: float) -> None:
    """The same measurements in minutes make the same prediction, in minutes."""
    points = exact(target(1), target(2), target(2, batch=64))
    scaled = [replace(point, seconds=point.seconds * factor) for point in points]
    wanted = target(4, batch=16)
    one, other = fit(points, PRIORS), fit(scaled, PRIORS)
    assert other.iteration_s(wanted) == pytest.approx(one.iteration_s(wanted) * factor)
