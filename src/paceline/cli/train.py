"""`paceline train`: one run of the spec's job."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from paceline.cli import options, show


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(
        epilog="Examples: paceline train -p 2 --epochs 1   |   "
        "paceline train --script train.py -p 2   |   paceline train spec.yaml --detach",
    )(train)


def train(
    spec: options.SpecPath = None,
    sets: options.Sets = None,
    program: Annotated[
        Optional[str],
        typer.Option("--program", help="A built-in trainer: dcgan or mlp."),
    ] = None,
    script: Annotated[
        Optional[Path],
        typer.Option("--script", metavar="FILE", help="Your own training script."),
    ] = None,
    procs: options.Procs = None,
    batch_size: options.BatchSize = None,
    epochs: Annotated[
        Optional[int],
        typer.Option("--epochs", min=1, help="Epochs to train."),
    ] = None,
    launcher: options.Launcher = None,
    name: options.Name = None,
    hosts: options.Hosts = None,
    accept_keys: options.AcceptKeys = None,
    tensorboard: options.Tensorboard = None,
    results: options.Results = None,
    detach: options.Detach = False,
    keep: options.Keep = False,
    json: options.Json = False,
) -> None:
    """Train once on the spec's machines and show what the ranks say."""
    from paceline import api
    from paceline.cli.render_run import show_run
    from paceline.cli.renting import Lines

    words = options.overrides(
        sets,
        name=name,
        job__program=program,
        job__script=str(script) if script else None,
        job__procs_per_node=procs,
        job__args__batch_size=batch_size,
        job__args__epochs=epochs,
        job__launcher=launcher,
        study__tensorboard=tensorboard,
        **options.cluster(hosts, accept_keys),
    )
    listen = show.Relay(show.say_raw if json else show.out_raw)
    record = api.train(
        spec,
        overrides=words,
        detach=detach,
        results=results,
        keep=keep,
        watcher=Lines(show.say),
        on_output=listen,
        on_interrupt=show.say_stopping,
    )
    show_run(record, as_json=json, detached=detach)
    listen.settle()
