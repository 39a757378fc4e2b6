"""`paceline study`: a baseline and a grid, measured; it resumes where it stopped."""

from __future__ import annotations

from typing import Annotated, Optional

import typer

from paceline.cli import options, show


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(
        epilog="Example: paceline study examples/local-dcgan.yaml   "
        "(the same command again goes on where it stopped)",
    )(study)


def study(
    spec: options.SpecPath = None,
    sets: options.Sets = None,
    name: options.Name = None,
    samples: options.Samples = None,
    iterations: options.Iterations = None,
    adaptive: Annotated[
        Optional[bool],
        typer.Option("--adaptive", help="Take only the samples that the answer needs."),
    ] = None,
    launcher: options.Launcher = None,
    hosts: options.Hosts = None,
    accept_keys: options.AcceptKeys = None,
    tensorboard: options.Tensorboard = None,
    results: options.Results = None,
    detach: Annotated[
        bool, typer.Option("--detach", "-d", help="Return at once; see watch and report.")
    ] = False,
    keep: options.Keep = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Measure how the job scales, and write a report."""
    from paceline import api
    from paceline.app.observers import Unwatched
    from paceline.cli.live import observer
    from paceline.cli.render_study import show_detached, show_study
    from paceline.cli.renting import Lines

    words = options.overrides(
        sets,
        name=name,
        study__samples=samples,
        study__iterations=iterations,
        study__adaptive=adaptive,
        job__launcher=launcher,
        study__tensorboard=tensorboard,
        **options.cluster(hosts, accept_keys),
    )
    if detach:
        show_detached(api.study_detached(spec, overrides=words, results=results), as_json=json)
        return
    with observer(quiet=quiet) as watcher:
        done = api.study(
            spec,
            overrides=words,
            results=results,
            observer=watcher,
            keep=keep,
            watcher=Unwatched() if quiet else Lines(show.say),
            on_interrupt=show.say_stopping,
        )
    show_study(done, as_json=json)
