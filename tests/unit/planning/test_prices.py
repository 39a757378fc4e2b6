"""Prices: the packaged capture, files of one's own, and what a time costs."""

from __future__ import annotations

import gzip

import pytest

from paceline.errors import DataError
from paceline.planning.prices import billed_s, packaged_prices, parse_prices

OWN = "region,instance_type,on_demand_usd_per_hour\nmoon-1,crater.large,0.36\n"


def test_the_packaged_prices_know_their_day() -> None:
    """The date of the capture stands in the label that goes beside every cost."""
    assert packaged_prices().captured_on == "2026-08-22"
    assert packaged_prices().label == "list prices of 2026-08-22"


def test_a_type_has_both_prices_and_its_size() -> None:
    """m5.large in us-east-1: what the public list said on that day."""
    price = packaged_prices().find("m5.large", "us-east-1")
    assert price is not None
    assert (price.vcpus, price.memory_gib, price.accelerator) == (2.0, 8.0, None)
    assert price.usd_per_hour() == 0.096
    assert price.usd_per_hour("spot") == 0.0459


def test_an_accelerator_is_named_and_counted() -> None:
    """g4dn.12xlarge has four T4."""
    price = packaged_prices().find("g4dn.12xlarge", "us-east-1")
    assert price is not None
    assert (price.accelerator, price.accelerator_count) == ("T4", 4.0)


def test_what_is_unknown_is_none() -> None:
    """An unknown type, an unknown region and a missing spot price have no cost, never zero."""
    prices = packaged_prices()
    assert prices.find("m5.enormous") is None
    assert prices.cost_usd("m5.large", seconds=60, region="moon-1") is None
    assert prices.cost_usd("t2.nano", seconds=60, market="spot") is None


def test_a_cost_is_rate_times_instances_times_hours() -> None:
    """Two m5.large for half an hour cost one hour of one."""
    cost = packaged_prices().cost_usd("m5.large", seconds=1800, instances=2)
    assert cost == pytest.approx(0.096)


def test_the_regions_of_the_capture() -> None:
    """Five regions are known, and each lists its types by name."""
    prices = packaged_prices()
    assert prices.regions == (
        *("ap-southeast-1", "eu-central-1", "eu-west-1"),
        *("us-east-1", "us-west-2"),
    )
    names = [price.instance_type for price in prices.in_region("eu-west-1")]
    assert names == sorted(names)
    assert len(names) > 1000


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_file_of_ones_own(pack: type[bytes]) -> None:
    """Plain or gzipped, with only the columns that are needed; an undated one says so."""
    prices = parse_prices(pack(OWN.encode()), source="mine.csv")
    assert prices.cost_usd("crater.large", seconds=10, region="moon-1") == pytest.approx(0.001)
    assert prices.label == "list prices of an unknown day"
    assert parse_prices(OWN.encode(), source="/x/p-2027-01-02.csv").captured_on == "2027-01-02"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"region,price\nmoon-1,3\n", "no column instance_type, on_demand_usd_per_hour"),
        (OWN.replace("0.36", "cheap").encode(), "on_demand_usd_per_hour is 'cheap'"),
        (OWN.replace("0.36", "-1").encode(), "on_demand_usd_per_hour is '-1'"),
        (b"\x1f\x8bbroken", "this is no price file"),
        (b"\xff\xfe\x00", "this is no price file"),
        (gzip.compress(OWN.encode(), mtime=0)[:12] + b"junk", "this is no price file"),
    ],
)
def test_a_broken_file_is_named(content: bytes, said: str) -> None:
    """What is wrong is said with the file's name, and no price is guessed."""
    with pytest.raises(DataError, match=r"mine\.csv") as found:
        parse_prices(content, source="mine.csv")
    assert said in str(found.value)


def test_a_start_is_billed_by_the_second_from_a_minute_on() -> None:
    """Below a minute a minute is billed, above it every second that was begun."""
    assert billed_s(3.0) == 60.0
    assert billed_s(61.2) == 62.0
