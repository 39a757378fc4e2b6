"""What is rented: one cluster as the cloud sees it, all of them as the ledger does, and strays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from paceline.app.meeting import hosts_of
from paceline.app.renting import Desk, require_same_account
from paceline.app.survey import holdings, machines_of, owned
from paceline.app.teardown import Removed, take_down
from paceline.errors import NotFound
from paceline.model.ec2 import ClusterKey, Holdings, Machine
from paceline.model.host import Cluster
from paceline.model.ledger import ClusterEntry, Entry
from paceline.model.rented import ClusterStatus, HostStatus, Stray
from paceline.planning.ec2.identity import CLUSTER_TAG, belongs, expiry_of
from paceline.planning.ec2.plan import host_name
from paceline.planning.prices import billed_s
from paceline.ports import Ledger

PROVIDER = "ec2"
_S_PER_HOUR = 3600.0


async def find_cluster(desk: Desk, key: ClusterKey) -> Cluster:
    """Return a cluster that is up as the noun that everything else works with."""
    known = await require_same_account(desk, key)
    machines = (await machines_of(desk, key)).living
    if not machines:
        raise NotFound(
            f"the cluster {key} is not up",
            hint="`paceline up SPEC` brings it up, `paceline ls` shows what is there",
        )
    return cluster_noun(desk, key, machines, "" if known is None else known.user)


def cluster_noun(desk: Desk, key: ClusterKey, machines: Sequence[Machine], user: str) -> Cluster:
    """Return instances as the cluster that everything else works with."""
    entry = desk.ledger.cluster(key)
    hosts = tuple(hosts_of(desk, key, machines, user))
    return Cluster(
        name=key.name,
        provider=PROVIDER,
        hosts=hosts,
        usd_per_host_hour=None if entry is None else entry.usd_per_host_hour,
        price_source="" if entry is None else entry.price_source,
        about={host.name: _about(one) for host, one in zip(hosts, machines, strict=True)},
    )


def _about(machine: Machine) -> Mapping[str, str]:
    """Return what could explain why one instance is quicker than another."""
    return {
        "instance_type": machine.instance_type,
        "zone": machine.zone,
        "image": machine.image_id,
        "market": "spot" if machine.spot_request_id else "on-demand",
    }


async def status_of(desk: Desk, key: ClusterKey) -> ClusterStatus:
    """Return how a cluster stands, as the cloud itself sees it; NotFound if there is none."""
    known = await require_same_account(desk, key)
    held = await holdings(desk, key)
    if known is None and not held.remains:
        raise NotFound(f"there is no cluster {key}", hint="`paceline ls` shows what is there")
    entries, now = desk.ledger.entries(key), desk.clock.now()
    expires_at = known.expires_at if known is not None else _told_expiry(held)
    return ClusterStatus(
        key=key,
        state=_state(held),
        hosts=tuple(_host(number, one) for number, one in enumerate(held.living)),
        created_at=None if known is None else known.created_at,
        expires_at=expires_at,
        usd_per_host_hour=None if known is None else known.usd_per_host_hour,
        price_source="" if known is None else known.price_source,
        cost_usd=None if known is None else cost_so_far(known, entries, now),
        others=tuple(str(thing) for thing in held.things),
        in_ledger=known is not None,
    )


def listed(ledger: Ledger, now: float) -> tuple[ClusterStatus, ...]:
    """Return the clusters that the ledger knows of; nobody is asked, so this is what we know."""
    return tuple(_from_ledger(ledger, entry, now) for entry in ledger.clusters())


def _from_ledger(ledger: Ledger, known: ClusterEntry, now: float) -> ClusterStatus:
    entries = _current(known, ledger.entries(known.key))
    hosts = [one for one in entries if one.resource_id and one.gone_at is None]
    state = "expired" if known.expires_at <= now else "up" if hosts else "coming up"
    return ClusterStatus(
        key=known.key,
        state=state,
        hosts=tuple(
            HostStatus(
                name=host_name(number),
                instance_id=one.resource_id or "",
                state="",
                instance_type=str(one.facts.get("type", known.instance_type)),
                zone=str(one.facts.get("zone", "")),
                launched_at=one.made_at,
            )
            for number, one in enumerate(hosts)
        ),
        created_at=known.created_at,
        expires_at=known.expires_at,
        usd_per_host_hour=known.usd_per_host_hour,
        price_source=known.price_source,
        cost_usd=cost_so_far(known, entries, now),
        others=(),
        in_ledger=True,
    )


def _current(known: ClusterEntry, entries: Iterable[Entry]) -> list[Entry]:
    """Return the hosts of this cluster, and not those of one of its name that went before."""
    return [
        entry
        for entry in entries
        if entry.kind == "instance"
        and not entry.is_launch
        and entry.made_at is not None
        and (entry.gone_at is None or entry.gone_at > known.created_at)
    ]


def cost_so_far(known: ClusterEntry, entries: Iterable[Entry], now: float) -> float | None:
    """Return what the hosts have cost by now, at the price that was known when they came up."""
    if known.usd_per_host_hour is None:
        return None
    seconds = 0.0
    for entry in _current(known, entries):
        until = min(entry.gone_at or now, max(known.expires_at, entry.made_at or now))
        seconds += billed_s(max(0.0, until - (entry.made_at or until)))
    return seconds * known.usd_per_host_hour / _S_PER_HOUR


def _state(held: Holdings) -> str:
    states = {one.state for one in held.living}
    if not states:
        return "ended" if held.remains else "gone"
    if states == {"running"}:
        return "up"
    if states <= {"stopped", "stopping"}:
        return "stopped"
    return "coming up" if "pending" in states else ", ".join(sorted(states))


def _host(number: int, one: Machine) -> HostStatus:
    return HostStatus(
        name=host_name(number),
        instance_id=one.id,
        state=one.state,
        instance_type=one.instance_type,
        zone=one.zone,
        launched_at=one.launched_at,
        address=one.public_address,
        peer_address=one.private_address,
        spot=one.spot_request_id is not None,
    )


def _told_expiry(held: Holdings) -> float | None:
    tags = [*(one.tags for one in held.living), *(one.tags for one in held.things)]
    return max((at for one in tags if (at := expiry_of(one)) is not None), default=None)


# --- strays ---------------------------------------------------------------------------------------


async def find_strays(desk: Desk, owner: str) -> tuple[Stray, ...]:
    """Return the clusters of an owner that have expired, or of which the ledger knows nothing."""
    held = await owned(desk, owner)
    tags = [*(one.tags for one in held.machines), *(one.tags for one in held.things)]
    names = {one.get(CLUSTER_TAG) for one in tags}
    found = []
    for name in sorted(one for one in names if one):
        key = ClusterKey(name, owner, desk.cloud.region)
        own = Holdings(
            tuple(one for one in held.machines if belongs(one.tags, key)),
            tuple(one for one in held.things if belongs(one.tags, key)),
        )
        expires_at = _told_expiry(own)
        known = desk.ledger.cluster(key)
        if known is None:
            found.append(Stray(key, "the ledger of this machine does not know it", own, expires_at))
        elif expires_at is not None and expires_at <= desk.clock.now():
            found.append(Stray(key, "it has expired", own, expires_at))
    return tuple(found)


async def reap(desk: Desk, strays: Sequence[Stray]) -> tuple[Removed, ...]:
    """Take strays down, one after the other."""
    return tuple([await take_down(desk, stray.key) for stray in strays])
