"""`paceline report`: the findings of a study, in any form."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated, Optional

import typer

from paceline.cli import options, show


class Form(str, Enum):
    """The forms of a report."""

    TEXT = "text"
    HTML = "html"
    CSV = "csv"
    JSON = "json"
    MARKDOWN = "markdown"


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(
        epilog="Examples: paceline report demo   |   paceline report demo --format html   |   "
        "paceline report before after",
    )(report)


def report(
    study: Annotated[
        Optional[str],
        typer.Argument(metavar="STUDY", help="A study's name or folder; else the newest."),
    ] = None,
    other: Annotated[
        Optional[str],
        typer.Argument(metavar="OTHER", help="A second study, to be compared with the first."),
    ] = None,
    form: Annotated[
        Form, typer.Option("--format", "-f", help="text on the terminal, or a file's content.")
    ] = Form.TEXT,
    output: Annotated[
        Optional[Path],
        typer.Option("--output", "-o", metavar="FILE", help="Write there; html: report.html."),
    ] = None,
    results: options.Results = None,
    json: options.Json = False,
) -> None:
    """Show the findings of a study again, or compare two studies.

    They are worked out from the samples that it kept.
    """
    from paceline import api

    wanted = "json" if json else form.value
    if output is None and wanted == "html":
        path = (
            api.write_report(study, results=results)
            if study is None or other is None
            else api.write_comparison(study, other, results=results)
        )
        show.out(str(path))
        return
    text = (
        api.report(study, form=wanted, results=results)
        if study is None or other is None
        else api.compare(study, other, form=wanted, results=results)
    )
    if output is None:
        show.out(text)
        return
    api.save(output, text)
    show.out(str(output))
