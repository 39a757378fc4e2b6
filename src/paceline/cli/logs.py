"""`paceline logs`: what the processes of a run say."""

from __future__ import annotations

from typing import Annotated, Optional

import typer

from paceline.cli import show


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(epilog="Example: paceline logs -f dcgan-4f9a1c")(logs)


def logs(
    run_id: Annotated[
        Optional[str],
        typer.Argument(metavar="[RUN]", help="A run's id, or its beginning; else the newest."),
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on until the run has ended.")
    ] = False,
    process: Annotated[
        Optional[str],
        typer.Option("--process", metavar="NAME", help="Only this one, such as rank-0."),
    ] = None,
) -> None:
    """Show the output of a run, also while it goes on."""
    from paceline import api

    api.logs(run_id, follow=follow, process=process, on_output=show.out_raw)
