"""Every figure in full."""

from __future__ import annotations

from paceline.measure.statistics import of_a_new_run
from paceline.model.summary import StudySummary
from paceline.reporting.details import HEADINGS, detail_rows, details_table
from paceline.reporting.numbers import plain


def test_each_figure_has_all_that_is_known_of_it(cluster_study: StudySummary) -> None:
    """n, mean, median, spread and intervals stand in the row of the figure."""
    rows = list(detail_rows(cluster_study))
    assert {len(row) for row in rows} == {len(HEADINGS)}
    rate = cluster_study.configurations[1].items_per_s
    assert rate is not None
    new = of_a_new_run(rate)
    assert new is not None
    own = next(row for row in rows if row[:2] == ("1 x 2, batch 16", "img/s"))
    assert own[2:6] == ("3", plain(rate.mean), plain(rate.median), plain(rate.spread))
    assert own[7] == f"{plain(new[0])} to {plain(new[1])}"
    figures = {row[1] for row in rows}
    assert {"USD/epoch", "waiting s/iteration", "serial fraction (Karp-Flatt)"} <= figures


def test_nothing_measured_makes_no_table(variant: StudySummary) -> None:
    """A study without samples has no figures; one with some has no empty rows."""
    rows = list(detail_rows(variant))
    assert (details_table(variant) is None) == (not rows)
    assert all(row[2] != "0" for row in rows)
