"""`paceline start`: switch a stopped cluster on again."""

from __future__ import annotations

import typer

from paceline.cli import options, show


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(epilog="Example: paceline start dcgan-scaling")(start)


def start(
    cluster: options.ClusterName = None,
    region: options.WhereRented = None,
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """Switch on the hosts that `stop --cluster` has switched off.

    They have other public addresses afterwards, and prove themselves by the same keys.
    """
    from paceline import api
    from paceline.cli.render_cloud import render_cluster
    from paceline.cli.renting import watcher

    with watcher(quiet=quiet) as watching:
        done = api.start(cluster, region=region, watcher=watching)
    if json:
        show.out_json(done)
    else:
        show.out(render_cluster(done))
