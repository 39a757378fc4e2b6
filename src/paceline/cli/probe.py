"""`paceline probe`: a few iterations on each candidate, and what they advise."""

from __future__ import annotations

from typing import Annotated, Optional

import typer

from paceline.cli import options, show


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(
        epilog="Examples: paceline probe spec.yaml   |   "
        "paceline probe spec.yaml --nodes 1,2 --types m5.large,c5.large --epochs 25",
    )(probe)


def probe(
    spec: options.SpecPath = None,
    sets: options.Sets = None,
    iterations: Annotated[
        int,
        typer.Option("--iterations", min=2, help="Iterations of each run, its warm-up included."),
    ] = 20,
    types: Annotated[
        Optional[str],
        typer.Option("--types", metavar="A,B,…", help="Instance types to try; else the study's."),
    ] = None,
    nodes: Annotated[
        Optional[str],
        typer.Option("--nodes", metavar="N,M,…", help="Host counts; else the smallest two."),
    ] = None,
    epochs: options.JobEpochs = 1.0,
    budget: options.Budget = None,
    deadline: options.Deadline = None,
    hosts: options.Hosts = None,
    accept_keys: options.AcceptKeys = None,
    results: options.Results = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Try each candidate for a few iterations; say which to take."""
    from paceline import api
    from paceline.cli.live import observer
    from paceline.cli.render_counsel import show_counsel

    limits = options.limits(budget, deadline)
    with observer(quiet=quiet) as watcher:
        done = api.probe(
            spec,
            overrides=options.overrides(sets, **options.cluster(hosts, accept_keys)),
            iterations=iterations,
            types=options.listed(types),
            nodes=options.whole_numbers(nodes),
            results=results,
            observer=watcher,
            on_interrupt=show.say_stopping,
        )
    counsel = api.advise_on(str(done.folder), epochs=epochs, **limits)
    show_counsel(counsel, as_json=json)
