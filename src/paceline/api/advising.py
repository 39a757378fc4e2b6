"""Advice: predictions from iterations that were measured, here or elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from paceline.advise.intervals import CONFIDENCE
from paceline.advise.iterations import parse_iterations
from paceline.advise.nouns import Launch, Machine, Prediction, Target, parse_target
from paceline.advise.predict import know, predict
from paceline.errors import UsageError
from paceline.planning.prices import (
    DEFAULT_REGION,
    MARKETS,
    Market,
    PriceList,
    packaged_prices,
    parse_prices,
)


@dataclass(frozen=True)
class Forecast:
    """Predictions, and what their intervals and costs mean."""

    predictions: tuple[Prediction, ...]
    prices: str
    region: str
    market: Market
    confidence: float = CONFIDENCE
    notes: tuple[str, ...] = ()


def forecast(
    files: Sequence[Path | str],
    targets: Sequence[str] = (),
    *,
    prices: Path | str | None = None,
    region: str = DEFAULT_REGION,
    market: str = "on-demand",
    samples_per_epoch: int | None = None,
) -> Forecast:
    """Predict `TYPE:NODES:PROCS:BATCH` targets from files of iterations.

    Without targets, all configurations in the files are told of.
    """
    wanted = [parse_target(words) for words in targets]
    chosen = chosen_market(market)
    if samples_per_epoch is not None and samples_per_epoch < 1:
        raise UsageError("an epoch has at least one sample", hint="--samples-per-epoch 50000")
    launches = [
        launch for file in files for launch in parse_iterations(_read(file), source=Path(file).name)
    ]
    known = price_list(prices)
    machines = machines_in(known, region, chosen)
    knowledge = know(launches, machines=machines, items=samples_per_epoch)
    return Forecast(
        predictions=tuple(predict(knowledge, item) for item in wanted or _all_of(launches)),
        prices=known.label,
        region=region,
        market=chosen,
        notes=() if machines else (f"no prices are known for the region {region!r}",),
    )


def price_list(path: Path | str | None) -> PriceList:
    """Return the prices of a file, or those that travel with this package."""
    if path is None:
        return packaged_prices()
    return parse_prices(_read(path), source=Path(path).name)


def machines_in(prices: PriceList, region: str, market: Market) -> dict[str, Machine]:
    """Return what is known of the instance types of a region."""
    return {
        price.instance_type: Machine(price.instance_type, price.vcpus, price.usd_per_hour(market))
        for price in prices.in_region(region)
    }


def chosen_market(words: str) -> Market:
    """Return the market that words name; else UsageError."""
    for market in MARKETS:
        if words == market:
            return market
    raise UsageError(f"{words!r} is no market", hint=f"one of {', '.join(MARKETS)}")


def _all_of(launches: Sequence[Launch]) -> list[Target]:
    return sorted({launch.target for launch in launches})


def _read(path: Path | str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        reason = error.strerror or str(error)
        raise UsageError(f"{path} cannot be read: {reason}", hint="name a file") from error
