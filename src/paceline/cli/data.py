"""`paceline data`: fetch and verify data sets."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Optional

import typer

from paceline.cli import options, show
from paceline.errors import DataError

_Name = Annotated[str, typer.Argument(metavar="NAME", help="cifar10, mnist, fashion-mnist …")]
_Spec = Annotated[
    Optional[Path],
    typer.Option("--spec", metavar="FILE", help="The spec that names the hosts."),
]
_Root = Annotated[
    Optional[Path],
    typer.Option("--root", metavar="FOLDER", help="Where it lies or shall lie."),
]


def register(app: typer.Typer) -> None:
    """Add the verb and its sub-verbs."""
    verbs = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
    verbs.command(
        epilog="Examples: paceline data fetch cifar10   |   paceline data fetch cifar10 --hosts A,B"
    )(fetch)
    verbs.command(epilog="Example: paceline data verify cifar10 --root ./cifar10")(verify)
    verbs.command(name="ls", epilog="Example: paceline data ls")(ls)
    app.add_typer(
        verbs,
        name="data",
        help="Fetch and verify data sets.",
        epilog="Examples: paceline data ls   |   paceline data fetch cifar10",
    )


def fetch(
    name: _Name,
    root: _Root = None,
    hosts: options.Hosts = None,
    accept_keys: options.AcceptKeys = None,
    spec: _Spec = None,
    sets: options.Sets = None,
    json: options.Json = False,
) -> None:
    """Download a data set, verify it, and lay it out as the trainers read it.

    With `--hosts` or `--spec`, it is fetched once, brought to all hosts over their own links, and
    verified on each.
    """
    from paceline import api
    from paceline.cli.live import byte_progress

    if hosts is not None or spec is not None:
        words = options.overrides(sets, **options.cluster(hosts, accept_keys))
        with byte_progress(f"bringing {name} to the hosts") as progress:
            found = api.bring_data(name, spec, overrides=words, root=root, progress=progress)
        if json:
            show.out_json(found)
        else:
            rows = [("HOST", "WHERE", "RECEIVED", "DIGEST")]
            rows += [
                (item.host, item.root, f"{item.received_bytes / 1e6:.1f} MB", item.digest[:12])
                for item in found
            ]
            show.out(show.columns(rows))
        return
    with byte_progress(f"fetching {name}") as progress:
        done = api.fetch_data(name, root, progress=progress)
    if json:
        show.out_json(done)
    else:
        show.out(str(done.root))


def verify(name: _Name, root: _Root = None, json: options.Json = False) -> None:
    """Check that a data set is whole and readable."""
    from paceline import api

    found = api.verify_data(name, root)
    if json:
        show.out_json(found)
    elif found.ok:
        show.out(f"{found.name} at {found.root}: whole\n  {found.digest}")
    if not found.ok:
        there = "" if root is None else f" --root {shlex.quote(str(root))}"
        problems = "\n".join(f"  {problem}" for problem in found.problems)
        raise DataError(
            f"{found.name} at {found.root or root or 'none of the usual places'} is not whole"
            + (f":\n{problems}" if problems else ""),
            hint=f"`paceline data fetch {name}{there}` downloads what is missing",
        )


def ls(json: options.Json = False) -> None:
    """List the data sets that have a name, and where they lie here."""
    from paceline import api

    known = api.known_datasets()
    if json:
        show.out_json(known)
        return
    rows = [("NAME", "WHAT", "HERE")]
    rows += [(item.name, item.description, str(item.found or "")) for item in known]
    show.out(show.columns(rows))
