"""`paceline watch`: look on while a study or a run goes on, from another terminal."""

from __future__ import annotations

from typing import Annotated, Optional

import typer

from paceline.cli import options, show


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(
        epilog="Examples: paceline watch   |   paceline watch demo-fake   "
        "(Ctrl-C ends the looking, never the study)",
    )(watch)


def watch(
    name: Annotated[
        Optional[str],
        typer.Argument(metavar="STUDY|RUN", help="What to look at; else what goes on now."),
    ] = None,
    results: options.Results = None,
) -> None:
    """Show a study or a run while it goes on, from any terminal.

    Each rank, the table so far, the time and the money that are left.
    A name that nothing has yet is waited for, two minutes at most.
    """
    from paceline import api
    from paceline.cli.live import onlooker

    with onlooker() as watcher:
        how = api.watch(name, results=results, observer=watcher, on_wait=show.say)
    show.say(how)
