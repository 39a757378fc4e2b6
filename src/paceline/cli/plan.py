"""`paceline plan`: what would be run, down to the command lines. Nothing is started."""

from __future__ import annotations

import typer

from paceline.cli import options, show


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(
        epilog="Example: paceline plan examples/local-dcgan.yaml",
    )(plan)


def plan(
    spec: options.SpecPath = None,
    sets: options.Sets = None,
    procs: options.Procs = None,
    batch_size: options.BatchSize = None,
    samples: options.Samples = None,
    iterations: options.Iterations = None,
    launcher: options.Launcher = None,
    hosts: options.Hosts = None,
    accept_keys: options.AcceptKeys = None,
    json: options.Json = False,
) -> None:
    """Show what would run: configurations, hosts, command lines.

    Nothing is started and nothing is created.
    """
    from paceline import api
    from paceline.cli.render_plan import render_plan

    words = options.overrides(
        sets,
        job__procs_per_node=procs,
        job__args__batch_size=batch_size,
        study__samples=samples,
        study__iterations=iterations,
        job__launcher=launcher,
        **options.cluster(hosts, accept_keys),
    )
    planned = api.plan(spec, overrides=words)
    if json:
        show.out_json(planned)
    else:
        show.out(render_plan(planned))
