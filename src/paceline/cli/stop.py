"""`paceline stop`: end a run that goes on."""

from __future__ import annotations

import typer

from paceline.cli import options, show


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(epilog="Example: paceline stop dcgan-4f9a1c")(stop)


def stop(
    run_id: options.RunId = None,
    json: options.Json = False,
) -> None:
    """Stop a run on all its hosts; what it has written is kept."""
    from paceline import api

    record = api.stop(run_id)
    if json:
        show.out_json(record)
    else:
        show.out(f"{record.run_id} {record.state.value}: {record.folder}")
