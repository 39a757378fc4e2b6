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
        epilog="Examples: paceline report demo   |   paceline report demo --format html",
    )(report)


def report(
    study: Annotated[
        Optional[str],
        typer.Argument(metavar="[STUDY]", help="A study's name or folder; else the newest."),
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
    """Show the findings of a study again, from the samples that it kept."""
    from paceline import api

    wanted = "json" if json else form.value
    if output is None and wanted == "html":
        show.out(str(api.write_report(study, results=results)))
        return
    text = api.report(study, form=wanted, results=results)
    if output is None:
        show.out(text)
        return
    api.save(output, text)
    show.out(str(output))
