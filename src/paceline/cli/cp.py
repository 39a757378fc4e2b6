"""`paceline cp`: files to and from hosts."""

from __future__ import annotations

from typing import Annotated

import typer

from paceline.cli import options, show


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(
        epilog="Examples: paceline cp --hosts 192.0.2.7,192.0.2.8 data.bin all:data.bin   |   "
        "paceline cp --spec spec.yaml 1:/var/log/syslog ./",
    )(cp)


def cp(
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="PATH, HOST:PATH or all:PATH.")],
    target: Annotated[str, typer.Argument(metavar="TARGET", help="PATH, HOST:PATH or all:PATH.")],
    cluster: options.OfCluster = None,
    spec: options.SpecOption = None,
    sets: options.Sets = None,
    hosts: options.Hosts = None,
    accept_keys: options.AcceptKeys = None,
    json: options.Json = False,
) -> None:
    """Copy files and folders between here and hosts.

    HOST is a name, an address or a number. Paths that are not absolute lie below the home folder
    there. As with `cp -r`, a folder as the target receives the source below its own name. From
    several hosts, each gets a folder here.
    """
    from paceline import api
    from paceline.app.carrying import require_carried

    words = options.overrides(sets, **options.cluster(hosts, accept_keys))
    done = api.copy(source, target, spec, overrides=words, cluster=cluster)
    if json:
        show.out_json(done)
    else:
        for item in done:
            if item.error is None:
                show.out(f"{item.host}: {item.path}")
    require_carried(done)
