"""What cannot be told apart is called a tie, at the top of the report as well."""

from __future__ import annotations

import pytest

from paceline.measure.scaling import summarise
from paceline.model.plan import Configuration, PlannedSample, StudyPlan
from paceline.model.summary import Sample, StudySummary

ONE, TWO, SPREAD = Configuration(1, 1, 16), Configuration(1, 2, 16), Configuration(2, 1, 16)


def study(rates: dict[Configuration, list[float]], scaling: str = "weak") -> StudySummary:
    """Return the findings of samples with these rates; the first is the baseline."""
    plan = StudyPlan(
        "s",
        next(iter(rates)),
        tuple(rates),
        tuple(
            PlannedSample(f"{item.label}-s{index}", item, index)
            for item, values in rates.items()
            for index in range(len(values))
        ),
        "d",
    )
    samples = [
        Sample(f"{item.label}-s{index}", "r", item, index, 9.0, items_per_s=rate)
        for item, values in rates.items()
        for index, rate in enumerate(values)
    ]
    return summarise(
        plan, samples, unit="img", data="", measured="", created_at=0.0, scaling=scaling
    )


def test_two_that_cannot_be_told_apart_are_a_tie() -> None:
    """The fastest and who comes so near that the interval of their ratio includes 1."""
    found = study({ONE: [60, 61, 60], TWO: [110, 112, 111], SPREAD: [110, 113, 111]})
    assert found.ties == ((SPREAD.label, TWO.label),)
    assert "It is a tie with 1 node x 2 processes, batch 16" in found.headline


def test_who_is_clearly_slower_is_no_tie() -> None:
    """Far apart, nothing is said of ties."""
    found = study({ONE: [60, 61, 60], TWO: [110, 112, 111], SPREAD: [90, 91, 90]})
    assert found.ties == ()
    assert "tie" not in found.headline


def test_single_samples_are_no_tie() -> None:
    """Where nobody knows the uncertainty, nobody can say that two are equal."""
    assert study({ONE: [60.0], TWO: [111.0], SPREAD: [111.0]}).ties == ()


def test_a_serial_fraction_where_only_processes_differ() -> None:
    """It follows from the speedup; a larger batch has an effect of its own."""
    big = Configuration(1, 2, 32)
    found = study({ONE: [60, 60], TWO: [100, 100], big: [110, 110]})
    fractions = {item.configuration: item.serial_fraction for item in found.configurations}
    serial = fractions[TWO]
    assert serial is not None
    assert serial.mean == pytest.approx(0.2)
    assert fractions[ONE] is None
    assert fractions[big] is None


def test_under_strong_scaling_the_shared_batch_is_what_is_alike() -> None:
    """Half the batch on twice the processes is the same work, and no difference to warn of."""
    half = Configuration(1, 2, 8)
    found = study({ONE: [60, 61, 60], half: [110, 112, 111]}, "strong")
    assert found.scaling == "strong"
    assert found.configurations[1].notes == ()
    assert found.headline.startswith("2 processes train")
    weak = study({ONE: [60, 61, 60], half: [110, 112, 111]})
    assert any("batch 8 instead of 16" in note for note in weak.configurations[1].notes)
