"""`paceline reap`: find what is rented and nobody minds any more, and end it."""

from __future__ import annotations

import sys
from typing import Annotated, Optional

import typer

from paceline.cli import options, show


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(
        epilog="Examples: paceline reap   |   paceline reap --region eu-west-1 --yes",
    )(reap)


def reap(
    regions: Annotated[
        Optional[list[str]],
        typer.Option(
            "--region", metavar="REGION", help="Where to look; else where you have rented."
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="End it without asking.")] = False,
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """End what is yours and has expired, or is not known here.

    It is shown first. Only what is yours is looked at: the tags say whose a thing is.
    """
    from paceline import api
    from paceline.cli.render_cloud import render_removed, render_strays
    from paceline.cli.renting import watcher

    found = api.strays(regions=regions or ())
    if json and not yes:
        show.out_json(found)
        return
    if not found:
        show.say("nothing of yours is left over")
        return
    show.say(render_strays(found))
    if not yes and not _agreed():
        show.say("nothing was changed; `paceline reap --yes` ends all of it")
        return
    with watcher(quiet=quiet) as watching:
        removed = api.reap(found, watcher=watching)
    if json:
        show.out_json(removed)
    for one in () if json else removed:
        show.out(render_removed(one))


def _agreed() -> bool:
    """Ask whoever sits at the terminal; without one, nobody has agreed."""
    return sys.stdin.isatty() and typer.confirm("End all of this?", err=True)
