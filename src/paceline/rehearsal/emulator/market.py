"""The spot market: what a type costs there today, and what a request offers for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moto.ec2.exceptions import EC2ClientError

from paceline.planning.prices import packaged_prices
from paceline.rehearsal.emulator.region import Region

Params = Mapping[str, Any]


def spot_price(region: Region, kind: str, zone: str) -> float:
    """Return today's spot price: around the mean of the packaged prices, other in each zone."""
    price = packaged_prices().find(kind, region.region_name)
    mean = None if price is None else price.mean_spot_usd_per_hour
    if mean is None:
        listed = None if price is None else price.on_demand_usd_per_hour
        mean = 0.4 * (listed or 0.1 * region.vcpus(kind))
    return round(mean * (1 + 0.03 * (ord(zone[-1]) % 5 - 2)), 4)


def read_spot(region: Region, kind: str, market: Params) -> dict[str, Any]:
    """Return what a request offers on the spot market; refuse what is below today's price."""
    options = market.get("SpotOptions") or {}
    price = spot_price(region, kind, "c")
    listed = packaged_prices().find(kind, region.region_name)
    most = float(options.get("MaxPrice") or (listed and listed.on_demand_usd_per_hour) or price)
    if most < price:
        raise EC2ClientError(
            "SpotMaxPriceTooLow",
            f"Your Spot request price of {most} is lower than the minimum required Spot request "
            f"fulfillment price of {price}.",
        )
    return {"type": options.get("SpotInstanceType") or "one-time", "most": most}
