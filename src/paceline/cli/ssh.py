"""`paceline ssh`: a shell on a host."""

from __future__ import annotations

import os
from typing import Annotated, Optional

import typer

from paceline.cli import options, show


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(
        epilog="Examples: paceline ssh --hosts 192.0.2.7,192.0.2.8 1   |   "
        "paceline ssh --spec spec.yaml -- htop",
    )(ssh)


def ssh(
    host: Annotated[
        Optional[str],
        typer.Argument(
            metavar="[HOST]", help="Its name, address or number; else 0, which is the master."
        ),
    ] = None,
    command: Annotated[
        Optional[list[str]],
        typer.Argument(metavar="[-- COMMAND...]", help="Run this instead of a shell."),
    ] = None,
    cluster: options.OfCluster = None,
    spec: options.SpecOption = None,
    sets: options.Sets = None,
    hosts: options.Hosts = None,
    accept_keys: options.AcceptKeys = None,
    json: options.Json = False,
) -> None:
    """Open a shell on a host, with its key verified.

    Nothing is written to ~/.ssh. With --json, print the words for the ssh client instead.
    """
    from paceline import api

    words = options.overrides(sets, **options.cluster(hosts, accept_keys))
    shell = api.shell(host, command or (), spec, overrides=words, cluster=cluster)
    if json:
        show.out_json({"host": shell.host, "argv": shell.argv})
    elif shell.argv:
        os.execvp(shell.argv[0], shell.argv)  # noqa: S606 - no shell is wanted here
    else:
        raise typer.Exit(shell.open_here())
