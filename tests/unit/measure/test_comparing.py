"""Two studies side by side: who is faster where, and what else has changed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from paceline.measure.comparing import compare
from paceline.measure.scaling import summarise
from paceline.model.plan import Configuration, PlannedSample, StudyPlan
from paceline.model.summary import Sample, StudySummary

ONE, TWO, FOUR = Configuration(1, 1, 16), Configuration(1, 2, 16), Configuration(1, 4, 16)


def study(name: str, rates: dict[Configuration, list[float]]) -> StudySummary:
    """Return the findings of samples with these throughputs."""
    plan = StudyPlan(
        name,
        next(iter(rates)),
        tuple(rates),
        tuple(
            PlannedSample(f"{item.label}-{index}", item, index)
            for item, values in rates.items()
            for index in range(len(values))
        ),
        "d",
    )
    samples = [
        Sample(f"{item.label}-{index}", "r", item, index, 9.0, items_per_s=rate)
        for item, values in rates.items()
        for index, rate in enumerate(values)
    ]
    return summarise(plan, samples, unit="img", data="", measured="", created_at=0.0)


BEFORE = study("before", {ONE: [50, 51, 50], TWO: [90, 91, 90], FOUR: [100, 101, 100]})
AFTER = study("after", {ONE: [60, 61, 60], TWO: [90, 91, 89], FOUR: [80, 81, 80]})


def test_each_configuration_has_its_verdict() -> None:
    """Faster, tie and slower follow from the interval of the ratio."""
    made = compare(BEFORE, AFTER)
    assert [item.verdict for item in made.configurations] == ["faster", "tie", "slower"]
    ratio = made.configurations[0].ratio
    assert ratio is not None
    assert ratio.mean == pytest.approx(181 / 151)
    assert made.headline == (
        "Against before, after is faster in 1 (1.20 times as fast), slower in 1 (0.80 times as "
        "fast), and cannot be told apart in 1, of 3 configurations in common."
    )


def test_a_study_ties_with_itself() -> None:
    """The same figures are no difference, in any configuration."""
    made = compare(BEFORE, BEFORE)
    assert made.headline == (
        "No difference can be told between before and before in all 3 configurations."
    )
    assert made.changed == {}


def test_who_was_measured_once_is_unknown() -> None:
    """Without an interval there is no verdict."""
    made = compare(study("a", {ONE: [50.0]}), study("b", {ONE: [70.0]}))
    assert made.configurations[0].verdict == "unknown"
    assert "too few samples to tell in 1" in made.headline


def test_what_only_one_has_measured_is_named() -> None:
    """It is not compared, and not forgotten."""
    made = compare(study("a", {ONE: [50, 51], TWO: [90, 91]}), study("b", {ONE: [50, 51]}))
    assert made.only_first == (TWO,)
    assert made.only_second == ()
    nothing = compare(study("a", {ONE: [50, 51]}), study("b", {TWO: [50, 51]}))
    assert "no configuration in common" in nothing.headline


def test_what_else_has_changed_is_listed() -> None:
    """A newer torch may be the cause; a name or the free disk is not."""
    told = {"hosts": {"a": {"torch": "2.12", "disk_free_bytes": 1}}, "spec": {"name": "before"}}
    later = {"hosts": {"a": {"torch": "2.13", "disk_free_bytes": 2}}, "spec": {"name": "after"}}
    made = compare(replace(BEFORE, provenance=told), replace(AFTER, provenance=later))
    assert made.changed == {"hosts.a.torch": ("2.12", "2.13")}
    assert compare(BEFORE, replace(AFTER, scaling="strong")).notes == (
        "they differ in scaling: weak; strong",
    )
