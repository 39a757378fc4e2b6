"""`paceline status`: how a rented cluster stands, as Amazon itself sees it."""

from __future__ import annotations

import time

import typer

from paceline.cli import options, show


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(epilog="Example: paceline status dcgan-scaling")(status)


def status(
    cluster: options.ClusterName = None,
    region: options.WhereRented = None,
    json: options.Json = False,
) -> None:
    """Show a rented cluster: its hosts, its costs, and its end."""
    from paceline import api
    from paceline.cli.render_cloud import render_status

    found = api.status(cluster, region=region)
    if json:
        show.out_json(found)
    else:
        show.out(render_status(found, time.time()))
