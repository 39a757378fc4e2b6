"""Hosts for as long as they are needed: brought up, used, and given back whatever happens."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from paceline.app.pausing import switch_on
from paceline.app.provision import bring_up
from paceline.app.renting import Desk, first_line
from paceline.app.survey import machines_of
from paceline.app.teardown import take_down
from paceline.errors import PacelineError
from paceline.model.ec2 import ClusterKey, Wish
from paceline.model.host import Cluster
from paceline.supervisor.job import METADATA_ADDRESS


def of_type(key: ClusterKey, instance_type: str) -> ClusterKey:
    """Return the cluster that a study uses for hosts of another type than its own. Pure."""
    return replace(key, name=f"{key.name}-{instance_type.replace('.', '-')}")


@asynccontextmanager
async def lodged(desk: Desk, wish: Wish, *, keep: bool) -> AsyncIterator[Cluster]:
    """Bring a cluster up for as long as we are inside; one that is up already is used and kept."""
    there = (await machines_of(desk, wish.key)).living
    since = None if there else desk.clock.now()
    if there:
        desk.watcher.step(f"using the cluster {wish.key.name}, which is up; it is kept")
        await switch_on(desk, wish.key)
        # Somebody wanted so many: a run may ask for more, and never takes any away.
        wish = replace(wish, nodes=max(wish.nodes, len(there)))
    cluster = await bring_up(desk, wish)
    try:
        yield _told(desk, wish.key, cluster, since)
    except BaseException:
        if since is not None and not keep:
            await _give_back(desk, wish.key)
        raise
    if since is not None and not keep:
        await take_down(desk, wish.key)


def _told(desk: Desk, key: ClusterKey, cluster: Cluster, since: float | None) -> Cluster:
    """Return the cluster with what its hosts and its bill need to know."""
    known = desk.ledger.cluster(key)
    on_spot = known is not None and known.market == "spot"
    notices_at = METADATA_ADDRESS if on_spot else None
    return replace(cluster, notices_at=notices_at, rented_since=since)


async def _give_back(desk: Desk, key: ClusterKey) -> None:
    """Take a cluster down after something has failed; the first error counts, not this one's."""
    try:
        await take_down(desk, key)
    except PacelineError as trouble:
        desk.watcher.step(
            f"the cluster could not be removed ({first_line(trouble)}): "
            f"`paceline down {key.name}` goes on with it"
        )
