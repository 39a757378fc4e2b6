"""How rented clusters stand: what `status`, `ls` and `reap` show."""

from __future__ import annotations

from dataclasses import dataclass

from paceline.model.ec2 import ClusterKey, Holdings


@dataclass(frozen=True)
class HostStatus:
    """One rented host; what is None was not asked, or is not known."""

    name: str
    instance_id: str
    state: str
    instance_type: str
    zone: str
    launched_at: float | None
    address: str | None = None
    peer_address: str | None = None
    spot: bool = False


@dataclass(frozen=True)
class ClusterStatus:
    """One rented cluster: its hosts, until when it lives, and what it has cost by now.

    `others` are the resources besides the hosts. `in_ledger` is whether this machine made it.
    """

    key: ClusterKey
    state: str
    hosts: tuple[HostStatus, ...]
    created_at: float | None
    expires_at: float | None
    usd_per_host_hour: float | None
    price_source: str
    cost_usd: float | None
    others: tuple[str, ...]
    in_ledger: bool


@dataclass(frozen=True)
class Stray:
    """A cluster that nobody minds any more, and why we think so."""

    key: ClusterKey
    reason: str
    held: Holdings
    expires_at: float | None
