"""`paceline run -- COMMAND`: any command, started as the ranks of a job."""

from __future__ import annotations

from typing import Annotated, Optional

import typer

from paceline.cli import options, show
from paceline.errors import UsageError


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(
        epilog="Example: paceline run -p 2 -- python my_script.py --lr 0.1",
    )(run)


def run(
    command: Annotated[
        list[str], typer.Argument(metavar="COMMAND", help="After `--`: the command and its words.")
    ],
    spec: Annotated[
        Optional[str],
        typer.Option("--spec", metavar="FILE", help="The spec that names the machines."),
    ] = None,
    sets: options.Sets = None,
    procs: options.Procs = None,
    launcher: options.Launcher = None,
    name: options.Name = None,
    hosts: options.Hosts = None,
    accept_keys: options.AcceptKeys = None,
    results: options.Results = None,
    detach: options.Detach = False,
    keep: options.Keep = False,
    json: options.Json = False,
) -> None:
    """Run a command once per rank, with the ranks' variables set."""
    from paceline import api
    from paceline.cli.render_run import show_run
    from paceline.cli.renting import Lines

    _refuse_a_spec(command[0])
    words = options.overrides(
        sets,
        name=name,
        job__procs_per_node=procs,
        job__launcher=launcher,
        **options.cluster(hosts, accept_keys),
    )
    listen = show.Relay(show.say_raw if json else show.out_raw)
    record = api.run(
        command,
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


def _refuse_a_spec(program: str) -> None:
    """Other verbs take the spec as their first word; here it would be run, on this machine."""
    if program.endswith((".yaml", ".yml")):
        raise UsageError(
            f"{program} is a spec, and no program",
            hint=f"paceline run --spec {program} -- COMMAND",
        )
