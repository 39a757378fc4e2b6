"""`paceline bake`: an image that has everything, so that hosts need no installation."""

from __future__ import annotations

from typing import Annotated, Optional

import typer

from paceline.cli import options, show
from paceline.errors import UsageError

_Region = Annotated[
    Optional[str], typer.Option("--region", help="Where the images are; else as AWS's tools.")
]


def register(app: typer.Typer) -> None:
    """Add the verb; `ls` and `rm` stand where otherwise a spec does."""
    app.command(
        epilog="Examples: paceline bake spec.yaml --name dcgan   |   paceline bake ls   |   "
        "paceline bake rm dcgan",
    )(bake)


def bake(
    spec: Annotated[
        Optional[str], typer.Argument(metavar="[SPEC | ls | rm]", help="The spec file; or a verb.")
    ] = None,
    image: Annotated[
        Optional[str], typer.Argument(metavar="[NAME]", help="Which image `rm` removes.")
    ] = None,
    name: Annotated[
        Optional[str], typer.Option("--name", help="What the image shall be called.")
    ] = None,
    sets: options.Sets = None,
    region: _Region = None,
    json: options.Json = False,
) -> None:
    """Make an image on which all that a spec needs is installed.

    A builder is rented, made ready, cleaned of keys and history, imaged and removed. Hosts of
    `cluster: {image: NAME}` then need no installation. An image costs money until `bake rm`.
    """
    if spec == "ls":
        _list(region, as_json=json)
    elif spec == "rm":
        _remove(image, region, as_json=json)
    elif name is None:
        raise UsageError("the image needs a name", hint="paceline bake SPEC --name NAME")
    else:
        _bake(spec, name, sets, region, as_json=json)


def _bake(
    spec: str | None, name: str, sets: list[str] | None, region: str | None, *, as_json: bool
) -> None:
    from paceline import api
    from paceline.cli.renting import watcher

    words = options.overrides(sets, cluster__region=region)
    with watcher() as watching:
        made = api.bake(spec, name=name, overrides=words, watcher=watching, on_interrupt=_stopping)
    if as_json:
        show.out_json(made)
    else:
        show.out(f"{made.name} {made.id}")
        show.say(f"use it as `cluster: {{image: {made.name}}}`; `paceline bake rm {made.name}`")


def _stopping() -> None:
    show.say("removing the builder …")


def _list(region: str | None, *, as_json: bool) -> None:
    from paceline import api

    shelf = api.baked_images(region=region)
    if as_json:
        show.out_json(shelf)
        return
    rows = [
        (one.name, one.id, one.region, one.state, f"{one.size_gib} GiB", one.created_at[:19])
        for one in shelf
    ]
    show.out(show.columns(rows) if rows else "no image has been baked here")


def _remove(name: str | None, region: str | None, *, as_json: bool) -> None:
    from paceline import api
    from paceline.cli.renting import watcher

    if name is None:
        raise UsageError("which image?", hint="`paceline bake ls` shows them")
    with watcher() as watching:
        gone = api.remove_image(name, region=region, watcher=watching)
    if as_json:
        show.out_json(gone)
    else:
        for thing in gone:
            show.out(f"removed {thing}")
