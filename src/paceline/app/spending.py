"""What the hosts of a study cost: what is spent, and what is left of a budget. Pure."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from paceline.model.host import Cluster
from paceline.model.record import RunRecord
from paceline.model.spec import Spec

_S_PER_HOUR = 3600.0
_SPEC_SOURCE = "the spec's cluster.price_usd_per_hour"


@dataclass(frozen=True)
class HostPrice:
    """What one host costs per hour, how many are rented, and who says so.

    `since` is when they were rented, if that was for this work.
    """

    usd_per_host_hour: float
    hosts: int
    source: str
    since: float | None = None

    @property
    def usd_per_hour(self) -> float:
        """What all hosts cost per hour, those that are idle included."""
        return self.usd_per_host_hour * self.hosts

    def told(self) -> Mapping[str, object]:
        """Return what is written down with each run."""
        told = {
            "usd_per_host_hour": self.usd_per_host_hour,
            "rented_hosts": self.hosts,
            "source": self.source,
        }
        return told if self.since is None else {**told, "rented_since": self.since}


@dataclass(frozen=True)
class Period:
    """A stretch of time in which hosts were rented; Unix seconds."""

    begin: float
    end: float
    usd_per_hour: float


def price_of(spec: Spec, cluster: Cluster) -> HostPrice | None:
    """Return what the hosts of a cluster cost: as the spec says, else as its provider does."""
    count, since = len(cluster.hosts), cluster.rented_since
    if spec.cluster.price_usd_per_hour is not None:
        return HostPrice(spec.cluster.price_usd_per_hour, count, _SPEC_SOURCE, since)
    if cluster.usd_per_host_hour is not None:
        return HostPrice(cluster.usd_per_host_hour, count, cluster.price_source, since)
    return None


def last_price(records: Iterable[RunRecord]) -> HostPrice | None:
    """Return the price that the newest run was taken at, if it has one."""
    newest = max(records, key=lambda record: record.created_at, default=None)
    price = newest.provenance.get("price") if newest is not None else None
    if not isinstance(price, Mapping):
        return None
    return HostPrice(price["usd_per_host_hour"], price["rented_hosts"], price["source"])


def earlier_periods(
    records: Iterable[RunRecord], *, now: float | None = None
) -> tuple[Period, ...]:
    """Return when hosts were rented for runs of a study, what lies between runs included.

    Runs of one sitting bear the same token: hosts were rented from the first to the last. With
    `now`, a run that has not ended is paid for until then.
    """
    sittings: dict[tuple[object, float], list[RunRecord]] = defaultdict(list)
    for record in records:
        price = record.provenance.get("price")
        if isinstance(price, Mapping):
            rate = float(price["usd_per_host_hour"]) * int(price["rented_hosts"])
            sittings[record.provenance.get("sitting"), rate].append(record)
    return tuple(
        Period(
            begin=min(_paid_since(record) for record in group),
            end=max(record.ended_at or now or record.created_at for record in group),
            usd_per_hour=rate,
        )
        for (_, rate), group in sittings.items()
    )


def _paid_since(record: RunRecord) -> float:
    """Return when the hosts of a run began to cost: they were booting before it could begin."""
    price = record.provenance.get("price")
    since = price.get("rented_since") if isinstance(price, Mapping) else None
    return record.created_at if since is None else min(float(since), record.created_at)


def spent_usd(periods: Sequence[Period]) -> float:
    """Return what these periods cost; where they overlap at one price, hosts are paid once."""
    total = 0.0
    for rate in {period.usd_per_hour for period in periods}:
        until = -math.inf
        own = [period for period in periods if period.usd_per_hour == rate]
        for period in sorted(own, key=lambda period: period.begin):
            total += max(0.0, period.end - max(until, period.begin)) * rate / _S_PER_HOUR
            until = max(until, period.end)
    return total


def cost_usd(seconds: float, price: HostPrice) -> float:
    """Return what all rented hosts cost for a time."""
    return seconds * price.usd_per_hour / _S_PER_HOUR


def affordable_s(left_usd: float, price: HostPrice) -> float:
    """Return for how long the rented hosts can be paid."""
    return left_usd * _S_PER_HOUR / price.usd_per_hour
