"""`paceline advise`: which cluster to take for the real job, measured or not."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from paceline.cli import options
from paceline.errors import UsageError

_TARGET_COLONS = 3


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(
        epilog="Examples: paceline advise demo-fake --epochs 25 --deadline 2h   |   "
        "paceline advise --from runs.csv --predict m5.large:4:1:32 --json",
    )(advise)


def advise(
    words: Annotated[
        Optional[list[str]],
        typer.Argument(
            metavar="[STUDY] [CONFIGURATION]…",
            help="The study to ask, else the newest; and more of what --predict takes.",
        ),
    ] = None,
    files: Annotated[
        Optional[list[Path]],
        typer.Option(
            "--from", metavar="FILE", help="Iterations measured elsewhere, as CSV; no study then."
        ),
    ] = None,
    targets: Annotated[
        Optional[list[str]],
        typer.Option(
            "--predict",
            metavar="TYPE:NODES:PROCS:BATCH",
            help="What to predict; may be given several times. Of hosts without a type, say host.",
        ),
    ] = None,
    types: Annotated[
        Optional[str],
        typer.Option("--types", metavar="A,B,…", help="Other instance types to consider."),
    ] = None,
    epochs: options.JobEpochs = 1.0,
    budget: options.Budget = None,
    deadline: options.Deadline = None,
    samples_per_epoch: Annotated[
        Optional[int],
        typer.Option(
            "--samples-per-epoch", min=1, help="Items of an epoch; else as the file tells."
        ),
    ] = None,
    prices: options.Prices = None,
    region: options.Region = None,
    market: options.Market = None,
    results: options.Results = None,
    json: options.Json = False,
) -> None:
    """Say which configuration to take: cheapest, fastest, best.

    The best is the one within --budget and --deadline.
    """
    from paceline import api
    from paceline.cli.render_advice import show_forecast
    from paceline.cli.render_counsel import show_counsel

    studies = [word for word in words or () if word.count(":") != _TARGET_COLONS]
    wanted = (*(targets or ()), *(word for word in words or () if word not in studies))
    if files:
        found = api.forecast(
            files,
            (*wanted, *studies),
            prices=prices,
            region=region or "us-east-1",
            market=market or "on-demand",
            samples_per_epoch=samples_per_epoch,
        )
        show_forecast(found, as_json=json)
        return
    if len(studies) > 1:
        raise UsageError(f"one study at a time: {', '.join(studies)}", hint="or --from runs.csv")
    counsel = api.advise_on(
        studies[0] if studies else None,
        targets=wanted,
        types=options.listed(types),
        epochs=epochs,
        prices=prices,
        region=region,
        market=market,
        samples_per_epoch=samples_per_epoch,
        results=results,
        **options.limits(budget, deadline),
    )
    show_counsel(counsel, as_json=json)
