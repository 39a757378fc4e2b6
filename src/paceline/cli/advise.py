"""`paceline advise`: what a cluster that nobody measured would take, and cost."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from paceline.cli import options
from paceline.errors import UsageError


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(
        epilog="Example: paceline advise --from runs.csv --predict m5.large:4:1:32 --json",
    )(advise)


def advise(
    words: Annotated[
        Optional[list[str]],
        typer.Argument(metavar="CONFIGURATION", help="More of what --predict takes."),
    ] = None,
    files: Annotated[
        Optional[list[Path]],
        typer.Option("--from", metavar="FILE", help="Iterations measured elsewhere, as CSV."),
    ] = None,
    targets: Annotated[
        Optional[list[str]],
        typer.Option(
            "--predict",
            metavar="TYPE:NODES:PROCS:BATCH",
            help="What to predict; else all that is in the file. May be given several times.",
        ),
    ] = None,
    samples_per_epoch: Annotated[
        Optional[int],
        typer.Option(
            "--samples-per-epoch", min=1, help="Items of an epoch; else as the file tells."
        ),
    ] = None,
    prices: options.Prices = None,
    region: options.Region = "us-east-1",
    market: options.Market = "on-demand",
    json: options.Json = False,
) -> None:
    """Predict time and cost of configurations from measured iterations."""
    from paceline import api
    from paceline.cli.render_advice import show_forecast

    if not files:
        raise UsageError("nothing to learn from", hint="--from runs.csv")
    found = api.forecast(
        files,
        (*(targets or ()), *(words or ())),
        prices=prices,
        region=region,
        market=market,
        samples_per_epoch=samples_per_epoch,
    )
    show_forecast(found, as_json=json)
