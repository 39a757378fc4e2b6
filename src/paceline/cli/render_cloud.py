"""Rented clusters as text: what a plan would rent, how a cluster stands, the list of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

from paceline.app.teardown import Removed
from paceline.cli import show
from paceline.cli.board import usd
from paceline.model.ec2 import CloudPlan, PlannedThing, Request
from paceline.model.host import Cluster
from paceline.model.rented import ClusterStatus, Stray
from paceline.planning.ec2.identity import expiry_word

_MOST_SHOWN = 6


def render_cloud(plan: CloudPlan) -> str:
    """Return what `up` would rent: resources, prices, and every request in order."""
    parts = [
        "\n".join(_head(plan)),
        "\n".join(_things(plan.things)),
        "\n".join(_requests(plan.requests)),
    ]
    parts += [f"note: {note}" for note in plan.notes]
    return "\n\n".join(parts)


def _head(plan: CloudPlan) -> Iterator[str]:
    yield f"cluster {plan.key.name} on EC2, {plan.key.region}: {plan.nodes} x {plan.instance_type}"
    yield from (f"  {label:<10}{text}" for label, text in _facts(plan))


def _facts(plan: CloudPlan) -> Iterator[tuple[str, str]]:
    if plan.usd_per_hour is None or plan.price.usd_per_hour is None:
        yield "price", "not known"
    else:
        yield (
            "price",
            (
                f"{usd(plan.usd_per_hour)} USD per hour for all hosts, "
                f"{plan.price.usd_per_hour:g} for each ({plan.price.source})"
            ),
        )
        yield (
            "at most",
            (
                f"{usd(plan.most_usd or 0.0)} USD: the hosts switch themselves off after "
                f"{show.duration(plan.ttl_s)}, whatever happens"
            ),
        )
    yield "image", f"{plan.image.name} ({plan.image.id}), user {plan.image.user}"
    for name, zones in plan.zones.items():
        yield "zones", f"{name} is offered in {', '.join(zones) or 'none'}"
    tried = dict.fromkeys(f"{one.instance_type} in {one.subnet.zone}" for one in plan.attempts)
    yield "place", f"the first with room of: {', '.join(tried)}"
    if plan.there:
        yield "there now", f"{plan.there} of {plan.nodes} hosts"


def _things(things: Sequence[PlannedThing]) -> Iterator[str]:
    yield "what will be there:"
    rows = [(f"  {thing.kind}", thing.name, thing.what) for thing in _shortened(things)]
    yield show.columns(rows)


def _shortened(things: Sequence[PlannedThing]) -> Iterator[PlannedThing]:
    """Yield things, of many alike the first ones and the last."""
    for kind in dict.fromkeys(thing.kind for thing in things):
        same = [thing for thing in things if thing.kind == kind]
        if len(same) <= _MOST_SHOWN:
            yield from same
            continue
        yield from same[: _MOST_SHOWN - 2]
        yield PlannedThing(kind, "…", f"{len(same) - _MOST_SHOWN + 1} more")
        yield same[-1]


def _requests(requests: Sequence[Request]) -> Iterator[str]:
    if not requests:
        yield "nothing has to be changed: all of it is there"
        return
    yield "what AWS will be asked for, in this order:"
    for number, request in enumerate(requests, start=1):
        yield f"  {number} {request.action}"
        yield from (f"      {line}" for line in _lines(request.parameters))


def _lines(parameters: Mapping[str, Any]) -> Iterator[str]:
    for name, value in parameters.items():
        if name == "TagSpecifications":
            yield from _tag_lines(value)
        else:
            plain = show.plain(value)
            text = plain if isinstance(plain, str) else json.dumps(plain)
            yield f"{name}: {text}"


def _tag_lines(specifications: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    on = ", ".join(str(one["ResourceType"]) for one in specifications)
    tags = ", ".join(f"{tag['Key']}={tag['Value']}" for tag in specifications[0]["Tags"])
    yield f"tags on {on}: {tags}"


# --- what is there --------------------------------------------------------------------------------


def render_cluster(cluster: Cluster) -> str:
    """Return a cluster that has come up."""
    rows = [("HOST", "ADDRESS", "INSIDE", "USER")]
    rows += [
        (host.name, host.address, host.peer_address, (host.ssh and host.ssh.user) or "")
        for host in cluster.hosts
    ]
    return show.columns(rows)


def render_status(status: ClusterStatus, now: float) -> str:
    """Return how a cluster stands."""
    lines = [f"cluster {status.key.name} in {status.key.region}: {status.state}"]
    lines += [f"  {label:<8}{text}" for label, text in _status_facts(status, now)]
    if status.hosts:
        rows = [("  HOST", "STATE", "TYPE", "ZONE", "ADDRESS", "INSIDE", "INSTANCE")]
        rows += [
            (f"  {one.name}", one.state, one.instance_type + (" spot" if one.spot else ""),
             one.zone, one.address or "", one.peer_address or "", one.instance_id)
            for one in status.hosts
        ]  # fmt: skip
        lines += ["", show.columns(rows)]
    return "\n".join(lines)


def _status_facts(status: ClusterStatus, now: float) -> Iterator[tuple[str, str]]:
    if status.cost_usd is not None:
        hourly = (status.usd_per_host_hour or 0.0) * len(status.hosts)
        yield (
            "cost",
            (
                f"about {usd(status.cost_usd)} USD so far, {usd(hourly)} per hour "
                f"({status.price_source})"
            ),
        )
    if status.expires_at is not None:
        yield "ends", f"{ends(status.expires_at, now)} ({expiry_word(status.expires_at)})"
    if not status.in_ledger:
        yield "note", "the ledger of this machine does not know it; its tags say whose it is"
    if status.state == "ended":
        yield "note", f"its hosts are gone; `paceline down {status.key.name}` removes what is left"
    for thing in status.others:
        yield "also", thing


def ends(expires_at: float, now: float) -> str:
    """Return when hosts switch themselves off."""
    left = expires_at - now
    return f"in {show.duration(left)}" if left > 0 else f"{show.duration(-left)} ago"


def cluster_table(clusters: Sequence[ClusterStatus], now: float) -> str:
    """Return the clusters that the ledger knows, a line each."""
    rows = [("CLUSTER", "REGION", "STATE", "HOSTS", "COST SO FAR", "ENDS")]
    for one in clusters:
        kinds = ", ".join(dict.fromkeys(host.instance_type for host in one.hosts))
        cost = "" if one.cost_usd is None else f"about {usd(one.cost_usd)} USD"
        end = "" if one.expires_at is None else ends(one.expires_at, now)
        hosts = f"{len(one.hosts)} x {kinds}" if one.hosts else ""
        rows.append((one.key.name, one.key.region, one.state, hosts, cost, end))
    return show.columns(rows)


def render_removed(removed: Removed) -> str:
    """Return what a teardown has removed."""
    if removed.nothing:
        return f"nothing of {removed.key} was there; the bill for it is zero"
    kinds = dict.fromkeys(thing.kind for thing in removed.things)
    counts = [
        f"{count} {kind}{'s' if count > 1 else ''}"
        for kind in kinds
        for count in [sum(thing.kind == kind for thing in removed.things)]
    ]
    return f"{removed.key} is gone: {', '.join(counts)} removed; nothing of it costs money any more"


def render_strays(strays: Sequence[Stray]) -> str:
    """Return what nobody minds any more, with all that it holds."""
    lines = []
    for stray in strays:
        until = "" if stray.expires_at is None else f", until {_day(stray.expires_at)}"
        lines.append(f"{stray.key}: {stray.reason}{until}")
        lines += [f"  {thing}" for thing in stray.held.remains]
    return "\n".join(lines)


def _day(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, tz=timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
