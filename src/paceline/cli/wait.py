"""`paceline wait`: until a detached run has ended."""

from __future__ import annotations

from typing import Annotated, Optional

import typer

from paceline.cli import options


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(epilog="Example: paceline wait dcgan-4f9a1c && echo done")(wait)


def wait(
    run_id: Annotated[
        Optional[str],
        typer.Argument(metavar="[RUN]", help="A run's id, or its beginning; else the newest."),
    ] = None,
    json: options.Json = False,
) -> None:
    """Wait until a run has ended; exit with 5 if it failed."""
    from paceline import api
    from paceline.cli.render_run import show_run

    show_run(api.wait(run_id), as_json=json)
