from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from paceline.api.wiring import SystemClock
from paceline.app.fleet import find_cluster
from paceline.app.meeting import Patience
from paceline.app.provision import bring_up, plan_up
from paceline.app.renting import Desk
from paceline.app.teardown import take_down
from paceline.errors import (
    CloudError,
    Conflict,
    EnvironmentFault,
    NoCapacity,
    NotFound,
    PlanError,
    QuotaExceeded,
    TransportError,
)
from paceline.model.ec2 import DiskWish
from paceline.model.host import Cluster
from paceline.model.ledger import EntryState
from paceline.rehearsal.emulator import Emulator, Fault, Inventory
from tests.fakes.rented import KEY, SshWorld, wish


def up(desk: Desk, *words: int, **more: object) -> Cluster:
    """Bring a cluster up."""
    return asyncio.run(bring_up(desk, wish(*words, **more)))  # type: ignore[arg-type]


def down(desk: Desk) -> None:
    """Take it down."""
    asyncio.run(take_down(desk, KEY))


def test_a_cluster_comes_up_as_the_wish_says(emulator: Emulator, desk: Desk) -> None:
    """All hosts come from one launch, in one zone, with our key, group, disk and expiry."""
    cluster = up(desk, 3)
    assert [host.name for host in cluster.hosts] == ["node0", "node1", "node2"]
    launches = [call for call in emulator.calls.all() if call.action == "RunInstances"]
    assert len(launches) == 1
    made = emulator.instances()
    assert {item.public_address for item in made} == {host.address for host in cluster.hosts}
    assert {item.private_address for item in made} == {h.peer_address for h in cluster.hosts}
    assert len({item.zone for item in made}) == 1
    assert {item.behaviour for item in made} == {"terminate"}
    assert cluster.usd_per_host_hour == 0.096
    assert "asked on" in cluster.price_source
    assert {about["zone"] for about in cluster.about.values()} == {made[0].zone}
    assert cluster.about["node2"]["instance_type"] == "m5.large"
    assert cluster.about["node2"]["market"] == "on-demand"
    assert asyncio.run(find_cluster(desk, KEY)) == cluster


def test_up_twice_is_the_same_as_once(emulator: Emulator, desk: Desk) -> None:
    """The second time nothing is changed, and the same hosts are there."""
    first = up(desk, 2)
    before = emulator.inventory()
    emulator.calls.clear()
    assert up(desk, 2) == first
    assert emulator.calls.changing() == ()
    assert emulator.inventory() == before


def test_a_cluster_grows_where_it_stands(emulator: Emulator, desk: Desk) -> None:
    """What is lacking is launched beside what is there; the first hosts keep their names."""
    first = up(desk, 2)
    time.sleep(1.1)  # EC2 tells when an instance was launched in whole seconds
    grown = up(desk, 4)
    assert grown.hosts[:2] == first.hosts
    assert len(grown.hosts) == 4
    assert len({item.zone for item in emulator.instances()}) == 1


def test_a_cluster_shrinks_from_its_end(emulator: Emulator, desk: Desk) -> None:
    """The last hosts go, and the ledger knows it."""
    first = up(desk, 3)
    smaller = up(desk, 1)
    assert smaller.hosts == first.hosts[:1]
    assert len(emulator.instances()) == 1
    gone = [entry for entry in desk.ledger.entries(KEY) if entry.state is EntryState.GONE]
    assert len(gone) == 2


def test_down_leaves_what_is_not_ours(emulator: Emulator, desk: Desk, strangers: Inventory) -> None:
    """Others' things stay, down to a cluster of the same name of another owner."""
    up(desk, 2)
    down(desk)
    assert emulator.inventory() == strangers
    down(desk)
    assert emulator.inventory() == strangers
    assert not desk.keyring.known(KEY, "user")
    with pytest.raises(NotFound):
        asyncio.run(find_cluster(desk, KEY))


def test_down_works_from_tags_alone(emulator: Emulator, desk: Desk, strangers: Inventory) -> None:
    """Without ledger and keys, what bears our tags is found and removed."""
    up(desk, 2)
    for path in desk.keyring.path(KEY, "user").parents[2].glob("ledger*"):
        path.unlink()
    desk.keyring.forget(KEY)
    down(desk)
    assert emulator.inventory() == strangers


def test_down_ends_what_it_recorded_even_without_tags(emulator: Emulator, desk: Desk) -> None:
    """Somebody who takes our tags away hides nothing from us."""
    before = emulator.inventory()
    up(desk, 2)
    (one, *_) = emulator.instances()
    region = emulator.regions[emulator.region]
    region.tags.pop(one.id)
    down(desk)
    assert emulator.inventory() == before


def test_the_next_zone_is_tried_and_then_the_next_type(emulator: Emulator, desk: Desk) -> None:
    """Where there is no room, the hosts come up elsewhere, all of them together."""
    emulator.limit_capacity(1, zone="us-east-1a", instance_type="m5.large")
    up(desk, 2)
    assert {item.zone for item in emulator.instances()} == {"us-east-1b"}
    down(desk)
    emulator.limit_capacity(0, instance_type="m5.large")
    up(desk, 2, types=("m5.large", "c5.large"))
    assert {item.instance_type for item in emulator.instances()} == {"c5.large"}


def test_no_room_anywhere_leaves_nothing(
    emulator: Emulator, desk: Desk, strangers: Inventory
) -> None:
    """Every place that was tried is named, and what was made for the hosts is gone again."""
    emulator.limit_capacity(0)
    with pytest.raises(NoCapacity) as caught:
        up(desk, 2)
    assert "m5.large in us-east-1a" in str(caught.value)
    assert "m5.large in us-east-1f" in str(caught.value)
    assert emulator.inventory() == strangers
    assert desk.ledger.clusters() == ()


def test_fewer_hosts_are_enough_if_the_spec_says_so(emulator: Emulator, desk: Desk) -> None:
    """With a declared minimum, what there is room for comes up; later the rest is added."""
    emulator.limit_capacity(3)
    assert len(up(desk, 4, min_nodes=2).hosts) == 3
    emulator.lift_limits()
    assert len(up(desk, 4, min_nodes=2).hosts) == 4


def test_a_quota_that_is_too_small_is_said_before_anything_is_made(
    emulator: Emulator, desk: Desk
) -> None:
    """Virtual CPUs are counted, those of other instances too."""
    emulator.conditions.vcpu_quotas["L-1216C47A"] = 6
    with pytest.raises(PlanError, match="4 hosts need 8 vCPUs, and the account may have 6"):
        up(desk, 4)
    assert emulator.calls.changing() == ()
    emulator.conditions.denied_actions.add("GetServiceQuota")
    with pytest.raises(QuotaExceeded, match="vCPU"):
        up(desk, 4)
    assert emulator.instances() == []


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"types": ("m5.lrage",)}, "no instance type m5.lrage in us-east-1; did you mean m5.large"),
        ({"types": ("t3.micro",)}, "t3.micro cannot be in a placement group of the strategy clus"),
        ({"image": "ami-0123456789abcdef0"}, "no image ami-0123456789abcdef0 was found"),
        ({"image": "my-own"}, "no image my-own was found"),
        ({"image": "deep-learning", "disk": DiskWish(20)}, "needs a disk of at least 75 GiB"),
        ({"types": ("m6g.large",), "image": "deep-learning"}, "no image deep-learning was found"),
        ({"zones": ("us-east-1x",)}, "nowhere that the spec allows"),
        ({"nodes": 8, "placement": "spread"}, "at most 7 hosts in a zone"),
    ],
)
def test_what_cannot_be_is_refused_at_plan(
    emulator: Emulator, desk: Desk, more: dict[str, object], words: str
) -> None:
    """Nothing is created for what EC2 would refuse later, and `plan` says the same."""
    asked = wish(**more)  # type: ignore[arg-type]
    with pytest.raises(PlanError, match=words):
        asyncio.run(bring_up(desk, asked))
    with pytest.raises(PlanError, match=words):
        asyncio.run(plan_up(desk, asked))
    assert emulator.calls.changing() == ()


def test_arm_gets_an_image_for_arm(emulator: Emulator, desk: Desk) -> None:
    """The alias means the image for the architecture of the type."""
    up(desk, 1, types=("m6g.large",))
    assert {item.architecture for item in emulator.instances()} == {"arm64"}


def test_rights_for_ec2_alone_are_enough(emulator: Emulator, desk: Desk) -> None:
    """Without parameters, prices and quotas, the image is found by name, the price in our list."""
    emulator.conditions.denied_actions |= {"GetParameters", "GetProducts", "GetServiceQuota"}
    cluster = up(desk, 1)
    assert "list prices of" in cluster.price_source
    assert cluster.usd_per_host_hour == 0.096


def test_spot_hosts_are_asked_for_and_given_back(emulator: Emulator, desk: Desk) -> None:
    """The market of the spec is used, its price told, and no request outlives the hosts."""
    before = emulator.inventory()
    cluster = up(desk, 2, market="spot")
    assert len(emulator.inventory()["spot requests"]) == 2
    assert "spot price" in cluster.price_source
    down(desk)
    assert emulator.inventory() == before


def test_hosts_that_never_answer_are_given_back(
    emulator: Emulator, desk: Desk, world: SshWorld, strangers: Inventory
) -> None:
    """The host is named, and nothing is left."""
    world.silent = {"54.144.0.6"}
    with pytest.raises(TransportError, match="node"):
        asyncio.run(bring_up(desk, wish(3), Patience(boot_s=5.0)))
    assert emulator.inventory() == strangers


def test_growing_in_vain_keeps_what_was_there(emulator: Emulator, desk: Desk) -> None:
    """If the new hosts fail, they alone go again."""
    first = up(desk, 2)
    before = emulator.inventory()
    emulator.limit_capacity(0)
    with pytest.raises(NoCapacity):
        up(desk, 4)
    assert emulator.inventory() == before
    assert up(desk, 2) == first


def test_a_key_of_that_name_of_somebody_else(emulator: Emulator, desk: Desk) -> None:
    """What bears our name and not our tags is not touched; we say so and go back."""
    up(desk, 1)
    region = emulator.regions[emulator.region]
    (pair,) = region.key_pairs.values()
    down(desk)
    pair.add_tags({"paceline:owner": "bob@desk", "paceline:cluster": KEY.name})
    region.key_pairs[pair.key_name] = pair
    before = emulator.inventory()
    with pytest.raises(Conflict, match="does not bear our tags"):
        up(desk, 1)
    assert emulator.inventory() == before


def test_another_account_is_noticed(desk: Desk) -> None:
    """With the keys of another account, `down` would find nothing and call that success."""
    up(desk, 1)
    known = desk.ledger.cluster(KEY)
    assert known is not None
    desk.ledger.write_cluster(replace(known, account="999999999999"))
    with pytest.raises(Conflict, match="was made in the account 999999999999"):
        down(desk)


def test_two_at_once(desk: Desk) -> None:
    """One wins, and the other says so before it changes anything."""
    with desk.ledger.lock(KEY):
        with pytest.raises(Conflict, match="at work on the cluster study"):
            up(desk, 1)
        with pytest.raises(Conflict, match="at work on the cluster study"):
            down(desk)


def test_without_its_key_a_cluster_is_only_taken_down(emulator: Emulator, desk: Desk) -> None:
    """If the state folder is lost, nobody gets in; `up` says so, and `down` works."""
    before = emulator.inventory()
    up(desk, 1)
    desk.keyring.forget(KEY)
    other = replace(desk, keyring=_Renewed(desk))  # type: ignore[arg-type]
    with pytest.raises(EnvironmentFault, match="private key is not on this machine"):
        up(other, 2)
    down(desk)
    assert emulator.inventory() == before


class _Renewed:
    """A keyring that has lost its keys and makes others."""

    def __init__(self, desk: Desk) -> None:
        self._inner = desk.keyring

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)

    def pair(self, key: object, name: str) -> object:
        """Return another key than before."""
        made = self._inner.pair(key, name)  # type: ignore[arg-type]
        return replace(made, public="ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAOTHER other")


@pytest.mark.parametrize("effect", ["lose-reply", "cut"])
@pytest.mark.parametrize(
    "action",
    ["ImportKeyPair", "CreateSecurityGroup", "AuthorizeSecurityGroupIngress",
     "CreatePlacementGroup", "RunInstances"],
)  # fmt: skip
def test_a_lost_reply_makes_nothing_twice(
    emulator: Emulator, desk: Desk, action: str, effect: str
) -> None:
    """What was made although nobody heard of it is taken over."""
    emulator.faults.add(Fault(effect, action=action))  # type: ignore[arg-type]
    assert len(up(desk, 2).hosts) == 2
    counts = {kind: len(items) for kind, items in emulator.inventory().items() if items}
    assert counts == {
        "instances": 2, "volumes": 2, "interfaces": 2, "security groups": 1, "key pairs": 1,
        "placement groups": 1,
    }  # fmt: skip


def test_what_cannot_be_seen_yet_is_waited_for(emulator: Emulator, desk: Desk) -> None:
    """EC2 shows what it has made only after a while, to launches too."""
    emulator.conditions.hidden_looks = 3
    before = emulator.inventory()
    assert len(up(desk, 2).hosts) == 2
    down(desk)
    assert emulator.inventory() == before


def test_a_host_that_ends_while_it_is_waited_for(
    emulator: Emulator, desk: Desk, strangers: Inventory
) -> None:
    """AWS takes a pending host back at times; the reason is said, and the rest goes too."""
    emulator.conditions.boot_s = 600.0

    class Watcher:
        def step(self, text: str) -> None:
            del text

        def progress(self, done: int, total: int, what: str) -> None:
            del done, total, what
            region = emulator.regions[emulator.region]
            for item in emulator.instances():
                if region.tags[item.id].get("paceline:owner") == KEY.owner:
                    region.terminate(item, "Server.InternalError", "Internal error on launch")

    with pytest.raises(CloudError, match=r"2 of 2 hosts ended .*Internal error on launch"):
        asyncio.run(bring_up(replace(desk, watcher=Watcher()), wish(2)))
    assert emulator.inventory() == strangers


def test_a_host_that_ends_while_we_knock(
    emulator: Emulator, desk: Desk, world: SshWorld, strangers: Inventory
) -> None:
    """A host that runs, does not answer yet, and ends: we say so at once, and do not wait on."""
    world.silent = {"54.144.0.6"}
    region = emulator.regions[emulator.region]

    class Watcher:
        def step(self, text: str) -> None:
            del text

        def progress(self, done: int, total: int, what: str) -> None:
            del total, what
            for item in emulator.instances() if done == 1 else ():
                if item.public_address in world.silent:
                    region.terminate(item, "Client.InstanceInitiatedShutdown", "It shut down")

    clock = SystemClock()  # by a hurried one, minutes would have passed before anybody looks
    with pytest.raises(CloudError, match=r"1 of 2 hosts ended .*It shut down"):
        asyncio.run(bring_up(replace(desk, watcher=Watcher(), clock=clock), wish(2)))
    assert emulator.inventory() == strangers


def test_throttling_of_a_third(emulator: Emulator, desk: Desk, quick_retries: None) -> None:
    """When 30% of the calls are refused, everything succeeds with at most 3 times the calls."""
    del quick_retries
    up(desk, 4)
    down(desk)
    plain = len(emulator.calls.all())
    emulator.calls.clear()
    emulator.throttle(0.3, seed=7)
    assert len(up(desk, 4).hosts) == 4
    down(desk)
    assert emulator.instances() == []
    assert len(emulator.calls.all()) <= 3 * plain


def test_cancelled_anywhere_nothing_is_left(
    emulator: Emulator, desk: Desk, strangers: Inventory, until: Callable[[str], Desk]
) -> None:
    """Ctrl-C at any step lets `up` clean up first."""
    for word in ("making the key pair", "making the security", "making the placement", "launching"):
        with pytest.raises(asyncio.CancelledError):
            asyncio.run(bring_up(until(word), wish(2)))
        assert emulator.inventory() == strangers, word
        assert desk.ledger.clusters() == ()
