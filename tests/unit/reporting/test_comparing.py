"""A comparison in every form."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import replace

import pytest

from paceline.measure.comparing import compare
from paceline.model.comparison import Comparison
from paceline.model.summary import StudySummary
from paceline.reporting.comparing import FORMS, ratio_chart
from paceline.reporting.text import WIDTH

EVIL = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def comparison(study: StudySummary) -> Comparison:
    """The study against itself on a machine with another torch, under a hostile name."""
    later = replace(study, name=EVIL, provenance={"host": {"torch": "9.9"}})
    return compare(study, later)


def test_the_text_has_every_configuration(comparison: Comparison) -> None:
    """Answer, table and what else has changed, within the width of a terminal."""
    made = FORMS["text"](comparison)
    assert "No difference can be told" in made
    assert made.count(" tie") >= 4
    assert "host.torch: 2.13.0+cpu -> 9.9" in made
    assert max(map(len, made.split("What else")[0].splitlines())) <= WIDTH


def test_the_figures_are_there_for_machines(comparison: Comparison) -> None:
    """CSV and JSON hold the same ratios as the comparison."""
    rows = list(csv.DictReader(FORMS["csv"](comparison).splitlines()))
    document = json.loads(FORMS["json"](comparison))
    for row, item, found in zip(
        rows, document["configurations"], comparison.configurations, strict=True
    ):
        assert found.ratio is not None
        assert float(row["ratio_low"]) == item["ratio"]["low"] == found.ratio.low
        assert row["configuration"] == item["configuration"]["label"] == found.configuration.label


@pytest.mark.parametrize("form", ["html", "markdown"])
def test_names_are_text(form: str, comparison: Comparison) -> None:
    """A hostile name of a study is shown and never run."""
    made = FORMS[form](comparison)
    assert EVIL not in made
    assert "alert" in made


def test_the_page_shows_the_ratios_around_one(comparison: Comparison) -> None:
    """The chart has a point and an interval for each, ties as open circles."""
    chart = ratio_chart(comparison)
    assert chart is not None
    (trace,) = chart.data
    assert trace["x"] == [pytest.approx(1.0)] * 4
    assert trace["marker"]["symbol"] == ["circle-open"] * 4
    assert re.search(r'data-chart="ratio"', FORMS["html"](comparison))


def test_nothing_in_common_is_said(study: StudySummary) -> None:
    """Without a common configuration there is a sentence and no empty table."""
    other = replace(study, configurations=())
    for form in FORMS:
        assert FORMS[form](compare(study, other))
    assert "no configuration in common" in FORMS["text"](compare(study, other))
    assert ratio_chart(compare(study, other)) is None
