"""`paceline up`: rent the hosts of a spec, or bring them to its number."""

from __future__ import annotations

from typing import Annotated, Optional

import typer

from paceline.cli import options, show


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(
        epilog="Examples: paceline up spec.yaml   |   "
        "paceline up -s cluster.provider=ec2 -s cluster.instance_type=c5.xlarge --nodes 2",
    )(up)


def up(
    spec: options.SpecPath = None,
    sets: options.Sets = None,
    nodes: Annotated[
        Optional[int], typer.Option("--nodes", "-n", min=1, help="How many hosts.")
    ] = None,
    name: options.Name = None,
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """Rent the hosts of a spec; this costs money until `down`.

    It waits until they answer. The same command again changes nothing, or brings the cluster to
    another number of hosts. The hosts switch themselves off when limits.ttl is over (4 h, if the
    spec does not say).
    """
    from paceline import api
    from paceline.cli.render_cloud import render_cluster
    from paceline.cli.renting import watcher

    words = options.overrides(sets, cluster__nodes=nodes, name=name)
    with watcher(quiet=quiet) as watching:
        cluster = api.up(
            spec, overrides=words, watcher=watching, on_interrupt=lambda: show.say(_STOPPING)
        )
    if json:
        show.out_json(cluster)
        return
    show.out(render_cluster(cluster))
    hourly = cluster.cost_usd_per_hour
    if hourly is not None:
        show.say(f"this costs {hourly:.2f} USD per hour ({cluster.price_source})")
    show.say(f"`paceline status {cluster.name}` shows it, `paceline down {cluster.name}` ends it")


_STOPPING = "stopping: what was made is removed again; this takes up to a few minutes"
