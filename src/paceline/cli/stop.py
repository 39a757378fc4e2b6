"""`paceline stop`: end a run that goes on."""

from __future__ import annotations

from typing import Annotated, Optional

import typer

from paceline.cli import options, show
from paceline.errors import UsageError


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(
        epilog="Examples: paceline stop dcgan-4f9a1c   |   paceline stop --cluster dcgan-scaling",
    )(stop)


def stop(
    run_id: options.RunId = None,
    cluster: Annotated[
        Optional[str],
        typer.Option("--cluster", metavar="NAME", help="Switch a rented cluster off instead."),
    ] = None,
    grace: Annotated[
        Optional[float],
        typer.Option(
            "--grace",
            metavar="SECONDS",
            min=0.0,
            help="How long ranks that handle SIGTERM may take to save what they have.",
            show_default="10",
        ),
    ] = None,
    json: options.Json = False,
) -> None:
    """Stop a run on all its hosts; what it has written is kept.

    Ranks are asked with SIGTERM. Those that have a handler for it may take their time to save
    what they have; those that ignore it are ended after a second.

    With --cluster, switch the hosts of a rented cluster off: they then cost nothing but their
    disks, until `paceline start` or `paceline down`.
    """
    from paceline import api

    if cluster is not None:
        _switch_off(cluster, run_id, as_json=json)
        return
    record = api.stop(run_id, grace_s=grace)
    if json:
        show.out_json(record)
    else:
        show.out(f"{record.run_id} {record.state.value}: {record.folder}")


def _switch_off(cluster: str, run_id: str | None, *, as_json: bool) -> None:
    from paceline import api
    from paceline.cli.renting import watcher

    if run_id is not None:
        raise UsageError("a run and a cluster are named", hint="one of them can be stopped")
    with watcher() as watching:
        hosts = api.stop_cluster(cluster, watcher=watching)
    if as_json:
        show.out_json({"cluster": cluster, "stopped": hosts})
    else:
        show.out(f"{cluster}: {hosts} hosts are off")
        show.say(f"their disks cost money; `paceline start {cluster}` or `paceline down {cluster}`")
