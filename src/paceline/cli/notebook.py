"""`paceline notebook`: JupyterLab on the first host, with all hosts behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from paceline.cli import options, show

if TYPE_CHECKING:
    from paceline.api.notebooks import Notebook


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(
        epilog="Examples: paceline notebook   |   paceline notebook --hosts A,B   |   "
        "paceline notebook --stop"
    )(notebook)


def notebook(
    spec: options.SpecPath = None,
    sets: options.Sets = None,
    hosts: options.Hosts = None,
    accept_keys: options.AcceptKeys = None,
    procs_per_node: options.Procs = None,
    results: options.Results = None,
    stop: Annotated[
        bool, typer.Option("--stop", help="End it, and bring home what lies in its folder.")
    ] = False,
    json: options.Json = False,
) -> None:
    """Open JupyterLab on the first host; cells run on all hosts.

    It listens on that host's own loopback, behind a token, and is reached through a tunnel, which
    stays open until Ctrl-C. JupyterLab itself goes on until `--stop`.
    """
    from paceline import api

    if stop:
        record = api.stop_notebook(results)
        if json:
            show.out_json(record)
        else:
            show.out(
                f"{record.run_id} is {record.state.value}; its notebooks: {record.folder / 'out'}"
            )
        return

    def ready(found: Notebook) -> None:
        if json:
            show.out_json(found)
        else:
            show.out(found.url)
            show.say(
                f"{found.run_id} on {found.host}; Ctrl-C closes the tunnel and leaves it running"
            )

    flags = {"job__procs_per_node": procs_per_node, **options.cluster(hosts, accept_keys)}
    record = api.notebook(
        spec, overrides=options.overrides(sets, **flags), results=results, on_ready=ready
    )
    show.say(f"{record.run_id} has ended; its notebooks: {record.folder / 'out'}")
