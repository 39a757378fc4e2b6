"""The study as Markdown."""

from __future__ import annotations

from dataclasses import replace

from paceline.model.summary import StudySummary
from paceline.reporting import markdown


def test_table_has_a_row_per_configuration(study: StudySummary) -> None:
    """Every row has as many cells as the header, and the figures of the table."""
    lines = [line for line in markdown.render(study).splitlines() if line.startswith("|")]
    assert len(lines) == 2 + len(study.configurations)
    assert len({line.count("|") for line in lines}) == 1
    assert "| 1 x 2 | 16 | 3 | 107.9 ± 3.6 | 296 ± 10 | 1.85 (1.80-1.91) | 93% (90-95) |" in lines


def test_answer_failures_and_notes_are_there(study: StudySummary) -> None:
    """The headline, the failed sample with its reason, and the remarks are all told."""
    made = markdown.render(study)
    assert f"**{study.headline}**" in made
    assert "## Failed samples" in made
    assert "killed by signal 9" in made
    assert "## Notes" in made


def test_markup_in_names_stays_text(study: StudySummary) -> None:
    """A name with bars, stars or tags breaks neither the table nor the page."""
    made = markdown.render(replace(study, name="a|b *c* <i>d</i>"))
    assert made.startswith("# a\\|b \\*c\\* \\<i\\>d\\</i\\>\n")


def test_studies_with_little_to_show(variant: StudySummary) -> None:
    """Whatever is missing, there is a document with a title and a table."""
    made = markdown.render(variant)
    assert made.startswith("# odd\n")
    assert "| nodes x procs |" in made
