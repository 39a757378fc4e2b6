"""A study as Markdown, for a pull request or a notebook."""

from __future__ import annotations

import re

from paceline.model.summary import StudySummary
from paceline.reporting.table import HOW_TO_READ, failures, remarks, study_table, subject

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|#])")


def render(summary: StudySummary) -> str:
    """Return the study's answer, table, failures and notes as Markdown."""
    made = study_table(summary)
    header = "| " + " | ".join(escaped(column.title) for column in made.columns) + " |"
    rule = "|" + "|".join(" ---: " if column.is_number else " --- " for column in made.columns)
    rows = ["| " + " | ".join(escaped(str(cell)) for cell in row.cells) + " |" for row in made.rows]
    blocks = [
        f"# {escaped(summary.name)}",
        f"**{escaped(summary.headline)}**",
        escaped(subject(summary)),
        "\n".join([header, f"{rule}|", *rows]),
        escaped(HOW_TO_READ),
    ]
    failed = [f"- {escaped(name)}: {escaped(reason)}" for name, reason in failures(summary)]
    if failed:
        blocks += ["## Failed samples", "\n".join(failed)]
    notes = [f"- {escaped(remark)}" for remark in remarks(summary)]
    if notes:
        blocks += ["## Notes", "\n".join(notes)]
    return "\n\n".join(block for block in blocks if block) + "\n"


def escaped(text: str) -> str:
    """Return the text as it is, whatever Markdown or HTML it seems to contain."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))
