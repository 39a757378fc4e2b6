"""Clusters switched off and on again: only their disks cost money meanwhile."""

from __future__ import annotations

from collections.abc import Sequence

from paceline.app.fleet import cluster_noun
from paceline.app.meeting import Meeting
from paceline.app.renting import Desk, pause, require_same_account
from paceline.app.survey import machines_of
from paceline.errors import CloudError, NotFound, PlanError
from paceline.model.ec2 import ClusterKey, Machine
from paceline.model.host import Cluster
from paceline.planning.ec2 import answers, baking, questions

_WITHIN_S = 900.0
_OFF = ("stopping", "stopped")


async def switch_off(desk: Desk, key: ClusterKey) -> int:
    """Stop all hosts of a cluster and wait until they are; return how many there are."""
    with desk.ledger.lock(key):
        await require_same_account(desk, key)
        machines = await _living(desk, key)
        if any(machine.spot_request_id for machine in machines):
            raise PlanError(
                "hosts of the spot market cannot be stopped, only ended",
                hint=f"`paceline down {key.name}` ends them",
            )
        running = [machine.id for machine in machines if machine.state not in _OFF]
        if running:
            desk.watcher.step(f"stopping {len(running)} hosts")
            await desk.cloud.call(baking.stop(running))
        await _stopped(desk, [machine.id for machine in machines])
        return len(machines)


async def start_again(desk: Desk, key: ClusterKey) -> Cluster:
    """Start all hosts of a cluster, wait until they answer, and return it as it is now.

    Their public addresses are others than before; their host keys are the same, and verified.
    """
    with desk.ledger.lock(key):
        known = await require_same_account(desk, key)
        if known is not None and known.expires_at <= desk.clock.now():
            raise PlanError(
                f"the cluster {key} has expired, and its hosts would end at once",
                hint=f"`paceline down {key.name}` removes it",
            )
        machines = await _living(desk, key)
        await _switch_on(desk, machines)
        user = "" if known is None else known.user
        ids = [machine.id for machine in machines]
        await Meeting(desk, key, user).hold(ids)
        there = (await machines_of(desk, key)).living
        return cluster_noun(desk, key, there, user)


async def switch_on(desk: Desk, key: ClusterKey) -> None:
    """Start those hosts of a cluster that are stopped; whether they answer, others find out."""
    await _switch_on(desk, (await machines_of(desk, key)).living)


async def _switch_on(desk: Desk, machines: Sequence[Machine]) -> None:
    off = [machine for machine in machines if machine.state in _OFF]
    if not off:
        return
    if any(machine.state == "stopping" for machine in off):
        await _stopped(desk, [machine.id for machine in off])
    desk.watcher.step(f"starting {len(off)} hosts")
    await desk.cloud.call(baking.start([machine.id for machine in off]))


async def _living(desk: Desk, key: ClusterKey) -> tuple[Machine, ...]:
    machines = (await machines_of(desk, key)).living
    if not machines:
        raise NotFound(f"the cluster {key} has no hosts", hint="`paceline ls` shows what is there")
    return machines


async def _stopped(desk: Desk, ids: Sequence[str]) -> None:
    """Wait until these hosts are stopped; one that ended meanwhile is an error."""
    until, tries = desk.clock.monotonic() + _WITHIN_S, 0
    while True:
        found = answers.machines(await desk.cloud.call(questions.by_id("instance", ids)))
        gone = [machine.id for machine in found if not machine.alive]
        if gone:
            raise CloudError(f"{', '.join(gone)} ended meanwhile")
        if len(found) == len(ids) and all(machine.state == "stopped" for machine in found):
            return
        if desk.clock.monotonic() >= until:
            raise CloudError(f"the hosts are not stopped within {_WITHIN_S:g} s")
        await pause(desk.clock, tries)
        tries = min(tries + 1, 3)
