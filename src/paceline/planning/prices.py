"""What instances cost: the packaged capture of EC2's list prices, or a file of the same columns.

A price is only as good as its date: whoever shows a cost shows `PriceList.label` beside it.
"""

from __future__ import annotations

import csv
import gzip
import io
import math
import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import resources
from pathlib import PurePath
from typing import Literal

from paceline.errors import DataError

Market = Literal["on-demand", "spot"]
MARKETS: tuple[Market, ...] = ("on-demand", "spot")
DEFAULT_REGION = "us-east-1"
# EC2 bills Linux by the second, and at least a minute of each start.
LEAST_BILLED_S = 60.0

_PACKAGED = "ec2-prices-2026-08-22.csv.gz"
_GZIP_MAGIC = b"\x1f\x8b"
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_NEEDED = ("region", "instance_type", "on_demand_usd_per_hour")


@dataclass(frozen=True)
class Price:
    """One instance type in one region. `None` is what nobody knows, never zero."""

    region: str
    instance_type: str
    vcpus: float | None = None
    memory_gib: float | None = None
    accelerator: str | None = None
    accelerator_count: float | None = None
    on_demand_usd_per_hour: float | None = None
    mean_spot_usd_per_hour: float | None = None

    def usd_per_hour(self, market: Market = "on-demand") -> float | None:
        """Return what an hour costs; for `spot`, the mean over the region's zones."""
        spot = market == "spot"
        return self.mean_spot_usd_per_hour if spot else self.on_demand_usd_per_hour


@dataclass(frozen=True)
class PriceList:
    """The prices of one capture: where they come from, and the day they were taken."""

    source: str
    captured_on: str | None
    prices: Mapping[tuple[str, str], Price] = field(repr=False)

    @property
    def label(self) -> str:
        """What stands beside a cost: `list prices of 2026-08-22`."""
        return f"list prices of {self.captured_on or 'an unknown day'}"

    @property
    def regions(self) -> tuple[str, ...]:
        """The regions that are known."""
        return tuple(sorted({region for region, _ in self.prices}))

    def find(self, instance_type: str, region: str = DEFAULT_REGION) -> Price | None:
        """Return what is known of a type in a region."""
        return self.prices.get((region, instance_type))

    def in_region(self, region: str = DEFAULT_REGION) -> tuple[Price, ...]:
        """Return every type of a region, by name."""
        found = (price for (where, _), price in self.prices.items() if where == region)
        return tuple(sorted(found, key=lambda price: price.instance_type))

    def cost_usd(
        self,
        instance_type: str,
        *,
        seconds: float,
        instances: int = 1,
        region: str = DEFAULT_REGION,
        market: Market = "on-demand",
    ) -> float | None:
        """Return what instances cost for a time; None where there is no price.

        This is the plain rate times the time; `billed_s` says what one start is billed.
        """
        price = self.find(instance_type, region)
        hourly = None if price is None else price.usd_per_hour(market)
        return None if hourly is None else hourly * instances * seconds / 3600.0


def billed_s(seconds: float) -> float:
    """Return for how many seconds an instance is billed that ran for so long."""
    return max(LEAST_BILLED_S, math.ceil(seconds))


@lru_cache(maxsize=1)
def packaged_prices() -> PriceList:
    """Return the prices that travel with this package."""
    file = resources.files("paceline.planning") / "data" / _PACKAGED
    return parse_prices(file.read_bytes(), source=_PACKAGED)


def parse_prices(content: bytes, *, source: str, captured_on: str | None = None) -> PriceList:
    """Read prices in the columns of the packaged file, plain or gzipped.

    Without `captured_on`, a date in the file's name is taken for the day of the capture.
    """
    found = _DATE.search(PurePath(source).name)
    rows = csv.DictReader(io.StringIO(_text(content, source), newline=""))
    missing = [name for name in _NEEDED if name not in (rows.fieldnames or ())]
    if missing:
        raise DataError(
            f"{source}: no column {', '.join(missing)}",
            hint=f"a price file has at least the columns {', '.join(_NEEDED)}",
        )
    prices = {(price.region, price.instance_type): price for price in _prices(rows, source)}
    return PriceList(source, captured_on or (found.group() if found else None), prices)


def _text(content: bytes, source: str) -> str:
    try:
        plain = gzip.decompress(content) if content.startswith(_GZIP_MAGIC) else content
        return plain.decode("utf-8-sig")
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise DataError(
            f"{source}: this is no price file: {error}", hint="CSV as text, plain or gzipped"
        ) from error


def _prices(rows: csv.DictReader[str], source: str) -> Iterator[Price]:
    for row in rows:
        yield Price(
            region=(row["region"] or "").strip(),
            instance_type=(row["instance_type"] or "").strip(),
            vcpus=_number(row, "vcpus", source),
            memory_gib=_number(row, "memory_gib", source),
            accelerator=row.get("accelerator") or None,
            accelerator_count=_number(row, "accelerator_count", source),
            on_demand_usd_per_hour=_number(row, "on_demand_usd_per_hour", source),
            mean_spot_usd_per_hour=_number(row, "mean_spot_usd_per_hour", source),
        )


def _number(row: Mapping[str, str | None], column: str, source: str) -> float | None:
    text = (row.get(column) or "").strip()
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or value < 0:
        what = f"{row['region']} {row['instance_type']}"
        raise DataError(
            f"{source}: {what}: {column} is {text!r}", hint="a number, or empty where unknown"
        )
    return value
