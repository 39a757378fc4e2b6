"""`paceline exec -- COMMAND`: a command on some hosts or all of them, not as a run."""

from __future__ import annotations

from typing import Annotated, Optional

import typer

from paceline.cli import options, show
from paceline.errors import UsageError


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(
        name="exec",
        epilog="Examples: paceline exec --hosts 192.0.2.7,192.0.2.8 -- uptime   |   "
        "paceline exec --spec spec.yaml --on 0,2 -- sh -c 'df -h | tail -1'",
    )(execute)


def execute(
    command: Annotated[
        list[str], typer.Argument(metavar="-- COMMAND...", help="The command and its words.")
    ],
    on: Annotated[
        Optional[str],
        typer.Option("--on", metavar="A,B,…", help="Some hosts: names, addresses or numbers."),
    ] = None,
    timeout: Annotated[
        Optional[str],
        typer.Option("--timeout", metavar="TIME", help="End it after, say, 90s or 5m."),
    ] = None,
    cluster: options.OfCluster = None,
    spec: options.SpecOption = None,
    sets: options.Sets = None,
    hosts: options.Hosts = None,
    accept_keys: options.AcceptKeys = None,
    json: options.Json = False,
) -> None:
    """Run a command on all hosts at once.

    Each line bears the name of its host. The words reach the program as they are, without a shell.
    What one host alone says is not marked.
    """
    from paceline import api
    from paceline.app.fanout import require_success
    from paceline.model.command import Command

    words = options.overrides(sets, **options.cluster(hosts, accept_keys))
    printer = _Printer()
    results = api.execute(
        command,
        spec,
        overrides=words,
        cluster=cluster,
        on=[word.strip() for word in (on or "").split(",") if word.strip()],
        on_line=None if json else printer.line,
        on_start=printer.start,
        timeout_s=None if timeout is None else _seconds(timeout),
    )
    if json:
        show.out_json(results)
    printer.settle()
    require_success(Command(tuple(command)), results)


def _seconds(text: str) -> float:
    from paceline.model.spec.durations import parse_duration

    try:
        return parse_duration(text)
    except ValueError as error:
        raise UsageError(f"--timeout {text}: {error}") from error


class _Printer:
    """Prints lines as they come, behind the name of their host where there are several."""

    def __init__(self) -> None:
        self._width = 0
        self._out = show.Relay(show.out_raw)

    def start(self, names: tuple[str, ...]) -> None:
        self._width = max(map(len, names)) if len(names) > 1 else 0

    def line(self, host: str, stream: str, text: str) -> None:
        prefix = f"{host:{self._width}} | " if self._width else ""
        if stream == "stdout":
            self._out(f"{prefix}{text}\n")
        else:
            show.say(f"{prefix}{text}")

    def settle(self) -> None:
        self._out.settle()
