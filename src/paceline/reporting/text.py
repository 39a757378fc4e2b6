"""A study as plain monospaced text, for a terminal or a mail."""

from __future__ import annotations

import textwrap
from collections.abc import Container, Sequence

from paceline.model.summary import StudySummary
from paceline.reporting.table import (
    HOW_TO_READ,
    Table,
    failures,
    remarks,
    study_table,
    subject,
    without,
)

WIDTH = 100
_GAP = "  "


def render(summary: StudySummary, *, width: int = WIDTH) -> str:
    """Return the study's name, its answer, its table, and what went wrong, ending in a newline."""
    head = f"{summary.name} ({subject(summary)})" if subject(summary) else summary.name
    blocks = [
        _wrapped(head, width),
        _wrapped(summary.headline, width),
        table(summary, width=width),
        _wrapped(HOW_TO_READ, width),
    ]
    failed = [_entry(f"{name}: {reason}", width) for name, reason in failures(summary)]
    if failed:
        blocks.append("\n".join(["Failed:", *failed]))
    notes = [_entry(remark, width) for remark in remarks(summary)]
    if notes:
        blocks.append("\n".join(["Notes:", *notes]))
    return "\n\n".join(blocks) + "\n"


def table(summary: StudySummary, *, width: int | None = None) -> str:
    """Return the table alone, its columns aligned; some are left out where there is no room."""
    made: Table | None = study_table(summary)
    lines = ""
    while made is not None:
        lines = _drawn(made)
        if width is None or max(map(len, lines.splitlines())) <= width:
            break
        made = without(made, summary)
    return lines


def _drawn(made: Table) -> str:
    header = [column.title for column in made.columns]
    rows = [header, *([str(cell) for cell in row.cells] for row in made.rows)]
    numbers = [index for index, column in enumerate(made.columns) if column.is_number]
    return aligned(rows, numbers=numbers)


def aligned(rows: Sequence[Sequence[str]], *, numbers: Container[int]) -> str:
    """Return a header and rows in columns, with a rule below the header; numbers to the right."""
    lines = [[one_line(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    ruled = [lines[0], ["-" * width for width in widths], *lines[1:]]
    return "\n".join(
        _GAP.join(
            cell.rjust(width) if index in numbers else cell.ljust(width)
            for index, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in ruled
    )


def _wrapped(text: str, width: int) -> str:
    return textwrap.fill(one_line(text), width, break_on_hyphens=False)


def _entry(text: str, width: int) -> str:
    return textwrap.fill(
        one_line(text),
        width,
        initial_indent="  ",
        subsequent_indent="    ",
        break_on_hyphens=False,
    )


def one_line(text: str) -> str:
    """Return the text without line breaks and control characters, which could move a cursor."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())
