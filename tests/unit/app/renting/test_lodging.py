"""Hosts for as long as they are needed, and hosts that are switched off and on."""

from __future__ import annotations

import asyncio
import base64
from dataclasses import replace

import pytest

from paceline.app.lodging import lodged, of_type
from paceline.app.pausing import start_again, switch_off
from paceline.app.provision import bring_up
from paceline.app.renting import Desk
from paceline.app.teardown import take_down
from paceline.errors import JobFailed, NotFound, PlanError
from paceline.model.host import Cluster
from paceline.planning.ec2.idling import IDLE_SCRIPT
from paceline.planning.ec2.rights import RIGHTS
from paceline.rehearsal.emulator import Emulator, Inventory
from paceline.supervisor.job import METADATA_ADDRESS
from tests.fakes.rented import KEY, wish


async def stay(
    desk: Desk, *, nodes: int = 2, keep: bool = False, market: str = "on-demand"
) -> Cluster:
    """Use a cluster for a moment."""
    async with lodged(desk, wish(nodes, market=market), keep=keep) as cluster:
        return cluster


def test_hosts_go_when_the_work_is_done(
    desk: Desk, emulator: Emulator, strangers: Inventory
) -> None:
    """Nothing is left, and it is told since when they were paid."""
    begun = desk.clock.now()
    cluster = asyncio.run(stay(desk))
    assert len(cluster.hosts) == 2
    assert cluster.rented_since is not None
    assert cluster.rented_since >= begun - 1
    assert cluster.notices_at is None
    assert emulator.inventory() == strangers


@pytest.mark.parametrize("error", [JobFailed("it failed"), asyncio.CancelledError()])
def test_hosts_go_whatever_happens(
    desk: Desk, emulator: Emulator, strangers: Inventory, error: BaseException
) -> None:
    """A failure and Ctrl-C leave nothing, and are what is raised."""

    async def fail() -> None:
        async with lodged(desk, wish(2), keep=False):
            raise error

    with pytest.raises(type(error)):
        asyncio.run(fail())
    assert emulator.inventory() == strangers


def test_the_first_error_counts(desk: Desk, emulator: Emulator, strangers: Inventory) -> None:
    """What goes wrong while hosts are given back does not hide why they are."""
    del strangers

    async def fail() -> None:
        async with lodged(desk, wish(2), keep=False):
            emulator.conditions.denied_actions.add("TerminateInstances")
            raise JobFailed("it failed")

    with pytest.raises(JobFailed, match="it failed"):
        asyncio.run(fail())


def test_a_cluster_that_is_up_is_used_and_kept(
    desk: Desk, emulator: Emulator, strangers: Inventory
) -> None:
    """Also where the work needs fewer hosts, or more: none is taken away."""
    asyncio.run(bring_up(desk, wish(3)))
    cluster = asyncio.run(stay(desk, nodes=2))
    assert len(cluster.hosts) == 3
    assert cluster.rented_since is None
    assert len(asyncio.run(stay(desk, nodes=4)).hosts) == 4
    assert len(emulator.inventory()["instances"]) == len(strangers["instances"]) + 4
    asyncio.run(take_down(desk, KEY))
    assert emulator.inventory() == strangers


def test_keep_keeps(desk: Desk, emulator: Emulator, strangers: Inventory) -> None:
    """With --keep the hosts stay, and the next time they are found."""
    asyncio.run(stay(desk, keep=True))
    assert len(emulator.inventory()["instances"]) == len(strangers["instances"]) + 2
    assert asyncio.run(stay(desk)).rented_since is None
    assert len(emulator.inventory()["instances"]) == len(strangers["instances"]) + 2


def test_spot_hosts_are_watched(desk: Desk, emulator: Emulator, strangers: Inventory) -> None:
    """Their supervisors learn where to ask whether the machine is taken back."""
    assert asyncio.run(stay(desk, market="spot")).notices_at == METADATA_ADDRESS
    assert emulator.inventory() == strangers


def test_each_type_has_a_cluster_of_its_own() -> None:
    """Hosts of another type than the spec's never meet those of the spec's own cluster."""
    assert of_type(KEY, "c5.2xlarge").name == "study-c5-2xlarge"
    assert of_type(KEY, "c5.2xlarge").owner == KEY.owner


def test_stopped_hosts_come_back_at_other_addresses(
    desk: Desk, emulator: Emulator, strangers: Inventory
) -> None:
    """The same hosts with the same keys, which are verified; `start` twice is as once."""
    before = asyncio.run(bring_up(desk, wish(2)))
    assert asyncio.run(switch_off(desk, KEY)) == 2
    assert asyncio.run(switch_off(desk, KEY)) == 2
    ours = [item for item in emulator.instances() if item.state == "stopped"]
    assert len(ours) == 2
    after = asyncio.run(start_again(desk, KEY))
    assert asyncio.run(start_again(desk, KEY)) == after
    assert [host.peer_address for host in after.hosts] == [
        host.peer_address for host in before.hosts
    ]
    assert {host.address for host in after.hosts}.isdisjoint(
        {host.address for host in before.hosts}
    )
    keys = [host.ssh.host_key for host in before.hosts if host.ssh]
    assert [host.ssh.host_key for host in after.hosts if host.ssh] == keys
    asyncio.run(take_down(desk, KEY))
    assert emulator.inventory() == strangers


def test_a_stopped_cluster_is_started_for_work(
    desk: Desk, emulator: Emulator, strangers: Inventory
) -> None:
    """It is used and kept like one that is up."""
    asyncio.run(bring_up(desk, wish(2)))
    asyncio.run(switch_off(desk, KEY))
    assert len(asyncio.run(stay(desk)).hosts) == 2
    assert len(emulator.inventory()["instances"]) == len(strangers["instances"]) + 2


def test_what_cannot_be_stopped_or_started_is_said(
    desk: Desk, emulator: Emulator, strangers: Inventory
) -> None:
    """Spot hosts, a cluster that is not there, and one that has expired."""
    with pytest.raises(NotFound):
        asyncio.run(switch_off(desk, KEY))
    asyncio.run(bring_up(desk, wish(1, market="spot")))
    with pytest.raises(PlanError, match="spot market"):
        asyncio.run(switch_off(desk, KEY))
    asyncio.run(take_down(desk, KEY))
    asyncio.run(bring_up(desk, wish(1)))
    asyncio.run(switch_off(desk, KEY))
    known = desk.ledger.cluster(KEY)
    assert known is not None
    desk.ledger.write_cluster(replace(known, expires_at=desk.clock.now() - 1))
    with pytest.raises(PlanError, match="has expired"):
        asyncio.run(start_again(desk, KEY))
    asyncio.run(take_down(desk, KEY))
    assert emulator.inventory() == strangers


def test_idle_hosts_know_when_to_go(desk: Desk, emulator: Emulator) -> None:
    """The watch over their idleness is among what they are told at their first boot."""
    asyncio.run(bring_up(desk, replace(wish(1), idle_s=900.0)))
    (host,) = emulator.instances()
    told = base64.b64decode(str(host.order.user_data)).decode()
    assert IDLE_SCRIPT in told
    assert "-ge 900" in told


def test_the_policy_allows_all_of_it(desk: Desk, emulator: Emulator) -> None:
    """Bringing up, stopping, starting, growing, shrinking and taking down need no other right."""
    asyncio.run(bring_up(desk, wish(1, market="spot")))
    asyncio.run(take_down(desk, KEY))
    asyncio.run(bring_up(desk, wish(2)))
    asyncio.run(bring_up(desk, wish(1)))
    asyncio.run(switch_off(desk, KEY))
    asyncio.run(start_again(desk, KEY))
    asyncio.run(take_down(desk, KEY))
    called = {call.action for call in emulator.calls.all()}
    assert called <= {right.action for right in RIGHTS}
    assert {"RunInstances", "TerminateInstances", "StopInstances", "StartInstances"} <= called
