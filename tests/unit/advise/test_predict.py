"""Predictions from the nearest source, with an interval, a price and a word on where from."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.advise.nouns import EpochTimes, Launch, Machine, Prediction, Target, parse_target
from paceline.advise.predict import know, predict
from paceline.errors import UsageError
from tests.unit.advise.conftest import first, launch


def of_study(published: Sequence[Launch], study: str, *nodes: int) -> list[Launch]:
    """Return the launches of a study on so many hosts."""
    return [item for item in published if item.study == study and item.target.nodes in nodes]


def test_whole_epochs_are_measured(published: tuple[Launch, ...]) -> None:
    """Two epochs of B on one host: their mean, and no price where none is known."""
    found = predict(know(published), parse_target("t2.medium:1:1:128"))
    assert found.basis == "measured"
    assert found.epoch_s == pytest.approx((338.93 + 341.98) / 2, rel=1e-4)
    assert found.cost_usd is None


def test_first_iterations_are_a_probe(
    published: tuple[Launch, ...], machines: Mapping[str, Machine]
) -> None:
    """From 20 iterations of m5.large: the epoch within its interval, and what it costs."""
    (whole,) = [item for item in published if item.target.instance_type == "m5.large"]
    found = predict(know([first(whole, 20)], machines=machines), whole.target)
    truth = sum(whole.epochs[0].seconds.values())
    assert found.basis == "probe"
    assert found.epoch_s == pytest.approx(truth, rel=0.005)
    assert found.epoch_s_low is not None
    assert found.epoch_s_high is not None
    assert found.epoch_s_low < truth < found.epoch_s_high
    assert found.epoch_s is not None
    assert found.cost_usd == pytest.approx(2 * 0.096 * found.epoch_s / 3600)


@pytest.mark.parametrize("study", ["B", "C"])
def test_one_and_two_hosts_predict_four(published: tuple[Launch, ...], study: str) -> None:
    """Twice the hosts that were measured: the steady iteration is off by less than 5%."""
    (wanted,) = of_study(published, study, 4)
    found = predict(know(of_study(published, study, 1, 2)), wanted.target)
    truth = sorted(wanted.epochs[0].seconds.values())[len(wanted.epochs[0].seconds) // 2]
    assert found.basis == "scaled"
    assert found.regime == "straggling"
    assert found.iteration_s == pytest.approx(truth, rel=0.05)


@pytest.mark.parametrize(("name", "here", "there"), [("c4", "A", "D"), ("m4", "D", "A")])
def test_another_batch_is_predicted(
    published: tuple[Launch, ...], name: str, here: str, there: str
) -> None:
    """From batches of 32 to 16 and back, with the help of the last, partial batch."""
    own = [item for item in published if item.target.instance_type == f"{name}.large"]
    (wanted,) = [item for item in own if item.study == there]
    found = predict(know([item for item in own if item.study == here]), wanted.target)
    truth = sum(wanted.epochs[0].seconds.values())
    assert found.basis == "scaled"
    assert found.epoch_s == pytest.approx(truth, rel=0.05)


def test_another_type_is_carried_over(
    published: tuple[Launch, ...], machines: Mapping[str, Machine]
) -> None:
    """A type that was not measured has a wide interval, and holds the truth."""
    (wanted,) = [item for item in published if item.target.instance_type == "c5.large"]
    others = [item for item in published if item.study == "A" and item is not wanted]
    found = predict(know(others, machines=machines), wanted.target)
    assert found.basis == "transferred"
    assert found.epoch_s_low is not None
    assert found.epoch_s_high is not None
    assert found.epoch_s_low < sum(wanted.epochs[0].seconds.values()) < found.epoch_s_high
    assert found.epoch_s_high > 1.5 * found.epoch_s_low


def test_what_nothing_relates_to_has_a_reason(published: tuple[Launch, ...]) -> None:
    """A GPU says nothing about itself through runs on CPUs."""
    found = predict(know(published), parse_target("p3.2xlarge:1:1:16"))
    assert found.epoch_s is None
    assert "p3.2xlarge" in (found.reason or "")


def test_without_the_length_of_an_epoch_there_is_a_reason() -> None:
    """It is said what to add; saying the number of items helps."""
    bare = Launch("S", Target("m5.large", 1, 1, 10), (EpochTimes(0, None, {0: 1.0, 1: 1.0}),))
    for words in ("m5.large:1:1:10", "m5.large:2:1:10"):
        found = predict(know([bare]), parse_target(words))
        assert "--samples-per-epoch" in (found.reason or "")
        assert predict(know([bare], items=1000), parse_target(words)).epoch_s is not None


def test_the_size_of_an_epoch_can_be_said(published: tuple[Launch, ...]) -> None:
    """B trained on 10,000 images; on 50,000 an epoch takes five times as long."""
    target = parse_target("t2.medium:1:1:128")
    told = predict(know(published, items=10_000), target)
    assert told == predict(know(of_study(published, "B", 1)), target)
    larger = predict(know(published, items=50_000), target)
    assert told.epoch_s is not None
    assert larger.epoch_s == pytest.approx(5 * told.epoch_s, rel=0.01)


def test_credits_that_run_out_stretch_the_epoch(
    published: tuple[Launch, ...], machines: Mapping[str, Machine]
) -> None:
    """51 minutes of work on a fresh t2.small take longer, and a note says why."""
    found = predict(know(published, machines=machines), parse_target("t2.small:1:1:32"))
    assert found.epoch_s == pytest.approx(2250 + (3092 - 2250) * 5, rel=0.01)
    assert found.epoch_s_low is not None
    assert found.epoch_s_low < 3092
    assert "CPU credits" in found.notes[0]
    # Two hosts are done in half an hour, before that.
    assert not predict(know(published, machines=machines), parse_target("t2.small:2:1:32")).notes


def test_launches_of_other_studies_are_other_launches(published: tuple[Launch, ...]) -> None:
    """What two experimenters measured is averaged, and their difference widens the interval."""
    (one,) = of_study(published, "B", 1)
    slower = [
        replace(epoch, seconds={index: 1.5 * value for index, value in epoch.seconds.items()})
        for epoch in one.epochs
    ]
    two = replace(one, study="Z", epochs=tuple(slower))
    alone, both = (predict(know(known), one.target) for known in ([one], [one, two]))
    assert alone.epoch_s is not None
    assert both.epoch_s == pytest.approx(alone.epoch_s * math.sqrt(1.5))
    assert _width(both) > 3 * _width(alone)


def _width(found: Prediction) -> float:
    assert found.epoch_s_low is not None
    assert found.epoch_s_high is not None
    return math.log(found.epoch_s_high / found.epoch_s_low)


TARGETS = st.builds(
    Target,
    st.sampled_from(["m5.large", "m5.xlarge", "c5.large", "t2.small", "t2.2xlarge", "x9.odd"]),
    st.integers(1, 16),
    st.integers(1, 8),
    st.integers(1, 512),
)
TIMES = st.lists(st.floats(0.001, 1000.0), min_size=1, max_size=30)


@given(st.lists(st.tuples(TARGETS, TIMES), min_size=1, max_size=5), TARGETS)
def test_every_prediction_makes_sense(
    known: list[tuple[Target, list[float]]], wanted: Target
) -> None:
    """Positive figures within their interval, or a reason: never both, never neither."""
    launches = [
        launch(target, times, planned=len(times) + 7, study=str(index))
        for index, (target, times) in enumerate(known)
    ]
    machines = {"m5.large": Machine("m5.large", 2, 0.1), "c5.large": Machine("c5.large", 2, 0.1)}
    for target in (wanted, known[0][0]):
        found = predict(know(launches, machines=machines), target)
        if found.epoch_s is None:
            assert found.reason
            assert found.cost_usd is None
            continue
        assert found.reason is None
        assert found.iteration_s is not None
        assert found.epoch_s_low is not None
        assert found.epoch_s_high is not None
        assert 0 < found.epoch_s_low <= found.epoch_s <= found.epoch_s_high < math.inf
        assert found.iteration_s > 0
        assert (found.cost_usd is None) == (target.instance_type not in machines)


@pytest.mark.parametrize(
    "words", ["", "m5.large", "m5.large:1:1", ":1:1:1", "m5.large:0:1:1", "a:1:1:1:1", "a:1:-1:1"]
)
def test_what_names_no_configuration_is_refused(words: str) -> None:
    """The error shows the shape that is wanted."""
    with pytest.raises(UsageError) as raised:
        parse_target(words)
    assert "TYPE:NODES:PROCS:BATCH" in str(raised.value.hint)


def test_words_and_targets_are_the_same() -> None:
    """What is parsed is printed again."""
    assert parse_target(" m5.large:4:2:32 ").words == "m5.large:4:2:32"


def test_a_burst_in_a_probe_is_said_and_not_carried_on(published: tuple[Launch, ...]) -> None:
    """Five slow iterations among the first 20: the epoch hardly moves, its interval widens."""
    (whole,) = [item for item in published if item.target.instance_type == "m5.large"]
    probe = first(whole, 20)
    seconds = {
        index: value * (1.6 if 8 <= index < 13 else 1.0)
        for index, value in probe.epochs[0].seconds.items()
    }
    disturbed = replace(probe, epochs=(replace(probe.epochs[0], seconds=seconds),))
    calm, found = (predict(know([item]), whole.target) for item in (probe, disturbed))
    assert found.epoch_s == pytest.approx(calm.epoch_s, rel=0.01)
    assert _width(found) > 2 * _width(calm)
    assert "burst" in found.notes[0]


def test_bursts_that_come_again_are_how_a_launch_goes_on() -> None:
    """One burst came and went and is left out; two of them count for all that is to come."""
    target = Target("m5.large", 2, 1, 10)
    slow = [2.0] * 4
    once = launch(target, [1.0] * 20 + slow + [1.0] * 20, planned=1000)
    again = launch(target, [1.0] * 10 + slow + [1.0] * 16 + slow + [1.0] * 10, planned=1000)
    seconds = [predict(know([item]), target).epoch_s for item in (once, again)]
    assert seconds == [pytest.approx(1000, rel=0.01), pytest.approx(1000 * (41 + 8) / 41, rel=0.05)]


def test_a_hidden_difference_between_launches_is_said(published: tuple[Launch, ...]) -> None:
    """Two launches of the same, 45% apart: the interval holds both, and a note names it."""
    (whole,) = [item for item in published if item.target.instance_type == "m5.large"]
    epoch = whole.epochs[0]
    slow = replace(epoch, seconds={index: 1.45 * s for index, s in epoch.seconds.items()})
    found = predict(know([whole, replace(whole, study="Z", epochs=(slow,))]), whole.target)
    truth = sum(epoch.seconds.values())
    assert found.epoch_s_low is not None
    assert found.epoch_s_high is not None
    assert found.epoch_s_low < truth
    assert found.epoch_s_high > 1.45 * truth
    assert "1.45" in found.notes[0]
    assert "threads" in found.notes[0]


def test_series_that_contradict_each_other_are_said(published: tuple[Launch, ...]) -> None:
    """One series tells more, and is heard; another one, 45% slower, is why there is a note."""
    known = of_study(published, "B", 1, 2)
    (two,) = of_study(published, "B", 2)
    slow = [
        replace(epoch, seconds={index: 1.45 * s for index, s in epoch.seconds.items()})
        for epoch in two.epochs
    ]
    other = replace(two, study="Z", epochs=tuple(slow))
    target = parse_target("t2.medium:4:1:128")
    alone, both = predict(know(known), target), predict(know([*known, other]), target)
    assert alone.notes == ()
    assert both.epoch_s == pytest.approx(alone.epoch_s)
    assert "factor of 1.4" in both.notes[0]
