"""`paceline doctor`: is everything here that a run needs?"""

from __future__ import annotations

import typer

from paceline.cli import options, show
from paceline.errors import EnvironmentFault


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(epilog="Example: paceline doctor")(doctor)


def doctor(
    spec: options.SpecPath = None,
    sets: options.Sets = None,
    hosts: options.Hosts = None,
    accept_keys: options.AcceptKeys = None,
    json: options.Json = False,
) -> None:
    """Look at everything that a run needs, and say what is missing and what to do."""
    from paceline import api

    words = options.overrides(sets, **options.cluster(hosts, accept_keys))
    checks = api.doctor(spec, overrides=words)
    if json:
        show.out_json(checks)
    else:
        for check in checks:
            show.out(f"{check.status:5} {check.name}: {check.detail}")
            if check.hint:
                show.out(f"      {check.hint}")
    failed = [check.name for check in checks if check.status == "fail"]
    if failed:
        raise EnvironmentFault(f"not ready: {', '.join(failed)}")
