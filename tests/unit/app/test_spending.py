"""What a study has cost, however often it was interrupted, and what its limits still allow."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.app.purse import Purse
from paceline.app.spending import (
    HostPrice,
    Period,
    earlier_periods,
    price_of,
    spent_usd,
)
from paceline.errors import Interrupted
from paceline.model.host import Cluster, Host
from paceline.model.plan import Configuration, RunPlan
from paceline.model.record import RunRecord, RunState
from paceline.model.spec import LimitsSpec, load_spec

PRICE = HostPrice(usd_per_host_hour=1.8, hosts=2, source="list prices of a day")
HOSTS = (Host("a", "a", "a"), Host("b", "b", "b"))
moments = st.integers(0, 50).map(float)


class Hands:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.time_s = 1000.0

    def now(self) -> float:
        """Return the time that was set."""
        return self.time_s

    def monotonic(self) -> float:
        """Return the time that was set."""
        return self.time_s

    async def sleep(self, seconds: float) -> None:
        """Pass over."""
        self.time_s += seconds


def record(begin: float, end: float | None, sitting: str = "s1") -> RunRecord:
    """Return a run that took place then, on hosts that cost a tenth of a cent a second."""
    return RunRecord(
        run_id="r",
        kind="sample",
        state=RunState.SUCCEEDED,
        configuration=Configuration(1, 1),
        folder=Path("r"),
        created_at=begin,
        ended_at=end,
        provenance={"price": dict(PRICE.told()), "sitting": sitting},
    )


def plan(timeout_s: float | None = None) -> RunPlan:
    """Return the plan of a run."""
    return RunPlan("r", Configuration(1, 1), "direct", (), "", 0, timeout_s=timeout_s)


def purse(clock: Hands, **limits: object) -> Purse:
    """Return the purse of a study with these limits, on hosts with a price."""
    made = Purse(LimitsSpec.model_validate(limits), clock)
    made.open(PRICE)
    return made


def test_the_price_of_the_spec_goes_before_the_providers() -> None:
    """For one's own machines the spec says what an hour is worth; else the provider may know."""
    rented = Cluster("c", "ec2", HOSTS, usd_per_host_hour=0.1, price_source="list")
    plain = load_spec({})
    own = load_spec({"cluster": {"price_usd_per_hour": 0.5}})
    assert price_of(plain, rented) == HostPrice(0.1, 2, "list")
    found = price_of(own, rented)
    assert found is not None
    assert found.usd_per_hour == 1.0
    assert price_of(plain, replace(rented, usd_per_host_hour=None)) is None
    assert rented.cost_usd_per_hour == pytest.approx(0.2)


def test_hosts_are_paid_between_the_runs_of_a_sitting_and_once() -> None:
    """From the first run to the last, pauses included; an overlap is not paid twice."""
    runs = [record(0, 100), record(150, 200), record(180, 300, "s2"), record(1000, None, "s3")]
    periods = earlier_periods(runs)
    assert {(period.begin, period.end) for period in periods} == {
        (0, 200),
        (180, 300),
        (1000, 1000),
    }
    assert spent_usd(periods) == pytest.approx(0.3)


def test_runs_without_a_price_cost_nothing_known() -> None:
    """A run of a machine that has no price makes no period."""
    assert earlier_periods([replace(record(0, 9), provenance={})]) == ()
    assert Purse(LimitsSpec(), Hands()).spent_usd is None


@given(st.lists(st.tuples(moments, moments), max_size=8))
def test_overlaps_are_paid_once(pairs: list[tuple[float, float]]) -> None:
    """Whatever the periods, what is paid is the time that any of them covers."""
    periods = [Period(min(pair), max(pair), 3600.0) for pair in pairs]
    covered = {
        second
        for period in periods
        for second in range(math.floor(period.begin), math.ceil(period.end))
    }
    assert spent_usd(periods) == pytest.approx(len(covered))


def test_the_money_of_earlier_sittings_counts() -> None:
    """A budget holds for the study, however often it is begun again."""
    clock = Hands()
    made = purse(clock, budget_usd=0.3)
    made.earlier = (Period(0, 200, PRICE.usd_per_hour),)
    clock.time_s += 60
    assert made.spent_usd == pytest.approx(0.26)
    assert made.left_s == pytest.approx(40)
    made.require(30.0)
    with pytest.raises(Interrupted, match=r"0\.26 of 0\.30 USD are spent"):
        made.require(50.0)


def test_a_run_is_cut_where_the_money_ends() -> None:
    """The plan of a run gets the time that is left as its limit, unless its own is shorter."""
    made = purse(Hands(), budget_usd=0.1)
    assert made.limited(plan()).timeout_s == pytest.approx(100)
    assert made.limited(plan(30.0)).timeout_s == 30.0
    assert purse(Hands()).limited(plan()).timeout_s is None


def test_the_deadline_is_that_of_the_sitting() -> None:
    """Nothing starts after it, and the words name it."""
    clock = Hands()
    made = purse(clock, deadline="10s")
    clock.time_s += 9
    made.require(1e6)
    clock.time_s += 1
    assert made.is_over
    with pytest.raises(Interrupted, match="deadline of 10 s is over"):
        made.require(None)


def test_another_cluster_has_another_price() -> None:
    """When the hosts change, what the first ones cost stays counted."""
    clock = Hands()
    made = purse(clock, budget_usd=10.0)
    clock.time_s += 100
    made.open(HostPrice(36.0, 1, "list"))
    clock.time_s += 100
    assert made.spent_usd == pytest.approx(0.1 + 1.0)
    assert json.dumps(made.provenance)
