"""`paceline doctor`: is everything here that a run needs?"""

from __future__ import annotations

from typing import Annotated

import typer

from paceline.cli import options, show
from paceline.cli.render_calibration import calibration_text
from paceline.errors import EnvironmentFault


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(
        epilog="Examples: paceline doctor   |   paceline doctor --hosts A,B --calibrate   |   "
        "paceline doctor --iam > policy.json",
    )(doctor)


def doctor(
    spec: options.SpecPath = None,
    sets: options.Sets = None,
    hosts: options.Hosts = None,
    accept_keys: options.AcceptKeys = None,
    calibrate: Annotated[
        bool,
        typer.Option(
            "--calibrate", help="Measure what the hosts and their links can do, and print that."
        ),
    ] = False,
    iam: Annotated[
        bool,
        typer.Option("--iam", help="Print the least IAM policy that EC2 needs, and do no more."),
    ] = False,
    json: options.Json = False,
) -> None:
    """Look at everything that a run needs.

    What is missing is named, with what to do about it.
    """
    from paceline import api

    if iam:
        show.out_json(api.iam_policy())
        return
    words = options.overrides(sets, **options.cluster(hosts, accept_keys))
    if calibrate:
        found = api.calibrate(spec, overrides=words)
        if json:
            show.out_json(found)
        else:
            show.out(calibration_text(found))
        return
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
