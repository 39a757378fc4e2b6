from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from paceline.app.fleet import find_strays, listed, reap, status_of
from paceline.app.provision import bring_up
from paceline.app.renting import Desk
from paceline.app.teardown import take_down
from paceline.cli.render_cloud import cluster_table, render_status, render_strays
from paceline.errors import LeftBehind, NotFound
from paceline.model.ec2 import Request
from paceline.rehearsal.emulator import Emulator, Inventory
from tests.fakes.rented import KEY, HurriedClock, wish


def up(desk: Desk, nodes: int = 2) -> None:
    """Bring a cluster up."""
    asyncio.run(bring_up(desk, wish(nodes)))


def later(desk: Desk, seconds: float) -> Desk:
    """Return the desk at a later hour."""
    clock = HurriedClock()
    clock.waited_s = seconds
    return replace(desk, clock=clock)


def test_status_is_what_the_cloud_says(emulator: Emulator, desk: Desk) -> None:
    """Hosts, cost, end and everything else that there is, as EC2 itself tells it."""
    up(desk)
    found = asyncio.run(status_of(later(desk, 1800.0), KEY))
    assert (found.state, len(found.hosts), found.in_ledger) == ("up", 2, True)
    assert found.cost_usd == pytest.approx(2 * 0.096 / 2, rel=0.05)
    assert len(found.others) == 3 + 2 + 2
    text = render_status(found, found.expires_at or 0.0)
    assert text.startswith("cluster study in us-east-1: up\n  cost    about 0.09")
    assert str(emulator.instances()[0].public_address) in text


def test_the_list_asks_nobody(emulator: Emulator, desk: Desk) -> None:
    """What `ls` shows stands in the ledger; without a network it is the same."""
    assert listed(desk.ledger, desk.clock.now()) == ()
    up(desk)
    emulator.calls.clear()
    (found,) = listed(desk.ledger, desk.clock.now() + 600.0)
    assert emulator.calls.all() == ()
    assert (found.state, len(found.hosts)) == ("up", 2)
    header, line = cluster_table([found], (found.expires_at or 0.0) - 90.0).splitlines()
    assert header.split()[:3] == ["CLUSTER", "REGION", "STATE"]
    assert "2 x m5.large" in line
    assert line.endswith("in 1 min 30 s")
    asyncio.run(take_down(desk, KEY))
    assert listed(desk.ledger, desk.clock.now()) == ()


def test_cost_ends_with_the_hosts(desk: Desk) -> None:
    """A host that went early costs no more; nothing costs anything after its expiry."""
    up(desk, 2)
    asyncio.run(bring_up(later(desk, 600.0), wish(1)))
    known = listed(desk.ledger, desk.clock.now() + 1_000_000.0)[0]
    hours = (600.0 + 3600.0) / 3600.0
    assert known.cost_usd == pytest.approx(hours * 0.096, rel=0.02)
    assert known.state == "expired"


def test_no_status_of_nothing(desk: Desk) -> None:
    """What was never there is not found, and the words say where to look."""
    with pytest.raises(NotFound, match="there is no cluster study in us-east-1"):
        asyncio.run(status_of(desk, KEY))


def test_hosts_that_ended_leave_something_to_remove(emulator: Emulator, desk: Desk) -> None:
    """After the expiry the hosts are gone by themselves; status says what is left."""
    up(desk, 1)
    for item in emulator.instances():
        emulator.shut_down_from_inside(item.id)
    found = asyncio.run(status_of(desk, KEY))
    assert found.state == "ended"
    assert "`paceline down study` removes what is left" in render_status(found, 0.0)


def test_strays_are_what_has_expired_or_nobody_knows(
    emulator: Emulator, desk: Desk, strangers: Inventory
) -> None:
    """Our expired and our unknown clusters are found and ended; those of others are not."""
    up(desk)
    assert asyncio.run(find_strays(desk, KEY.owner)) == ()
    (expired,) = asyncio.run(find_strays(later(desk, 4000.0), KEY.owner))
    assert expired.reason == "it has expired"
    known = desk.ledger.cluster(KEY)
    assert known is not None
    desk.ledger.write_cluster(replace(known, gone_at=1.0))
    (stray,) = asyncio.run(find_strays(desk, KEY.owner))
    assert "does not know it" in stray.reason
    assert "instance i-" in render_strays([stray])
    asyncio.run(reap(desk, [stray]))
    assert emulator.inventory() == strangers
    assert asyncio.run(find_strays(desk, KEY.owner)) == ()


def test_what_cannot_be_removed_is_said(emulator: Emulator, desk: Desk) -> None:
    """If somebody else uses our group, `down` names it, fails, and goes on when it is asked to."""
    up(desk, 1)
    before = set(emulator.inventory()["instances"])
    region = emulator.regions[emulator.region]
    (ours,) = [group for groups in region.groups.values() for group in groups.values()
               if group.name.startswith("paceline-")]  # fmt: skip
    image = emulator.instances()[0].order.image_id
    theirs = {
        "ImageId": image, "InstanceType": "m5.large", "MinCount": 1, "MaxCount": 1,
        "SecurityGroupIds": [ours.id],
    }  # fmt: skip
    asyncio.run(desk.cloud.call(Request("RunInstances", theirs)))
    with pytest.raises(LeftBehind, match=f"security group {ours.id}.*DeleteSecurityGroup"):
        asyncio.run(take_down(desk, KEY))
    (other,) = set(emulator.inventory()["instances"]) - before
    ended = Request("TerminateInstances", {"InstanceIds": [other.partition("/")[2]]})
    asyncio.run(desk.cloud.call(ended))
    asyncio.run(take_down(desk, KEY))
    assert emulator.inventory()["security groups"] == {}
