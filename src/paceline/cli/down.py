"""`paceline down`: give rented hosts back, with everything that was made for them."""

from __future__ import annotations

from typing import Annotated

import typer

from paceline.cli import options, show


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(
        epilog="Examples: paceline down   |   paceline down dcgan-scaling   |   "
        "paceline down spec.yaml   |   paceline down --all",
    )(down)


def down(
    cluster: options.ClusterName = None,
    everything: Annotated[
        bool, typer.Option("--all", "-a", help="All clusters that this machine has rented.")
    ] = False,
    region: options.WhereRented = None,
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """End a rented cluster for good: hosts, disks, groups and keys. Nothing is asked.

    It can be repeated, and it works without anything that this machine has written down. If
    something is left, it says so and fails.
    """
    from paceline import api
    from paceline.cli.render_cloud import render_removed
    from paceline.cli.renting import watcher

    with watcher(quiet=quiet) as watching:
        removed = api.down(cluster, everything=everything, region=region, watcher=watching)
    if json:
        show.out_json(removed)
    elif not removed:
        show.say("no cluster is up")
    for one in () if json else removed:
        show.out(render_removed(one))
