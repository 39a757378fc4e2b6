"""`paceline wait`: until a detached run has ended."""

from __future__ import annotations

import typer

from paceline.cli import options


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(epilog="Example: paceline wait dcgan-4f9a1c && echo done")(wait)


def wait(
    run_id: options.RunId = None,
    json: options.Json = False,
) -> None:
    """Wait until a run has ended; exit with 5 if it failed."""
    from paceline import api
    from paceline.cli.render_run import show_run

    show_run(api.wait(run_id), as_json=json)
