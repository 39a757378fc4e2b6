"""Predictions and advice, on the terminal and as JSON."""

from __future__ import annotations

from typing import Any

from paceline.advise.nouns import Prediction
from paceline.api.advising import Forecast
from paceline.cli import show

_HEADER = ("CONFIGURATION", "ITERATION", "EPOCH", "90% INTERVAL", "COST", "BASIS")


def show_forecast(found: Forecast, *, as_json: bool) -> None:
    """Print predictions."""
    for note in found.notes:
        show.say(note)
    if as_json:
        show.out_json(forecast_document(found))
        return
    show.out(show.columns([_HEADER, *(_cells(item) for item in found.predictions)]))
    for item in found.predictions:
        for note in item.notes:
            show.out(f"{item.target.words}: {note}")
    if any(item.cost_usd is not None for item in found.predictions):
        show.out(f"\nCost of one epoch: {found.prices}, {found.region}, {found.market}.")


def forecast_document(found: Forecast) -> dict[str, Any]:
    """Return predictions as the plain data that `--json` prints."""
    return {
        "predictions": [_document(item) for item in found.predictions],
        "confidence": found.confidence,
        "prices": found.prices,
        "region": found.region,
        "market": found.market,
        "notes": list(found.notes),
    }


def _document(item: Prediction) -> dict[str, Any]:
    target = item.target
    return {
        "instance_type": target.instance_type,
        "nodes": target.nodes,
        "procs_per_node": target.procs_per_node,
        "batch_size": target.batch_size,
        "iteration_s": item.iteration_s,
        "epoch_s": item.epoch_s,
        "epoch_s_low": item.epoch_s_low,
        "epoch_s_high": item.epoch_s_high,
        "cost_usd": item.cost_usd,
        "basis": item.basis,
        "regime": item.regime,
        "reason": item.reason,
        "notes": list(item.notes),
    }


def _cells(item: Prediction) -> tuple[str, ...]:
    if item.reason is not None or item.iteration_s is None:
        return (item.target.words, "", "", "", "", f"none: {item.reason}")
    cost = "" if item.cost_usd is None else f"{item.cost_usd:.4f} USD"
    return (
        item.target.words,
        f"{item.iteration_s:.3f} s",
        show.duration(item.epoch_s),
        f"{show.duration(item.epoch_s_low)} to {show.duration(item.epoch_s_high)}",
        cost,
        str(item.basis),
    )
