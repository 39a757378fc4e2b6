"""Baking from the builder to the image, and that nothing stays behind whatever happens."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from paceline.app.bakery import Bakery
from paceline.app.baking import bake
from paceline.app.fleet import find_strays, reap
from paceline.app.provision import bring_up
from paceline.app.renting import Desk
from paceline.app.teardown import take_down
from paceline.errors import AlreadyThere, EnvironmentFault, NotFound
from paceline.model.host import Cluster
from paceline.planning.ec2.baking import (
    builder_key,
    create_image,
    give_name,
    image_by_id,
    snapshot_ids,
    take_from_cluster,
)
from paceline.providers.ec2 import Ec2Cloud
from paceline.rehearsal.emulator import Emulator, Inventory
from tests.fakes.baking_scenes import NAME, nothing
from tests.fakes.rented import KEY, SshWorld, desk_at, wish
from tests.killing import Zygote, points

BUILDER = builder_key(NAME, KEY.owner, KEY.region)
BAKE, REMOVE = "tests.fakes.baking_scenes:bake", "tests.fakes.baking_scenes:remove"
STUDY = "tests.fakes.baking_scenes:study"
Tell = Callable[[str, object], None]


def new_images(emulator: Emulator, before: Inventory) -> dict[str, int]:
    """Return how many images and snapshots there are that were not there before; and no more."""
    now = emulator.inventory()
    more = {kind: len(items) - len(before[kind]) for kind, items in now.items()}
    return {kind: count for kind, count in more.items() if count}


def test_a_baked_image_starts_hosts(
    desk: Desk, emulator: Emulator, strangers: Inventory, world: SshWorld
) -> None:
    """The builder is made ready, cleaned and gone; `up` takes the image by its name."""
    ready: list[Cluster] = []

    async def prepare(cluster: Cluster) -> None:
        ready.append(cluster)

    image = asyncio.run(bake(desk, wish(3), NAME, prepare))
    assert [len(cluster.hosts) for cluster in ready] == [1]
    assert new_images(emulator, strangers) == {"images": 1, "snapshots": 1}
    assert (image.name, image.state, image.user) == (NAME, "available", "ubuntu")
    assert any("cloud-init clean" in script for script in world.said)
    cluster = asyncio.run(bring_up(desk, wish(2, image=NAME)))
    assert len(cluster.hosts) == 2
    assert {item.order.image_id for item in emulator.instances()} >= {image.id}
    assert cluster.master.ssh is not None
    assert cluster.master.ssh.user == "ubuntu"
    asyncio.run(take_down(desk, KEY))
    assert new_images(emulator, strangers) == {"images": 1, "snapshots": 1}
    asyncio.run(Bakery(desk, KEY.owner).remove(NAME))
    assert emulator.inventory() == strangers


def test_a_name_is_baked_once(desk: Desk, emulator: Emulator, strangers: Inventory) -> None:
    """A second time is refused before anything is rented."""
    asyncio.run(bake(desk, wish(1), NAME, nothing))
    emulator.calls.clear()
    with pytest.raises(AlreadyThere, match="there is an image 'base' already"):
        asyncio.run(bake(desk, wish(1), NAME, nothing))
    assert emulator.calls.changing() == ()
    del strangers


@pytest.mark.parametrize("moment", ["prepare", "the image", "cancel"])
def test_whatever_goes_wrong_the_builder_goes(
    desk: Desk, emulator: Emulator, strangers: Inventory, moment: str
) -> None:
    """Preparation that fails, an image that is refused, Ctrl-C: as before, and the first error."""

    async def prepare(cluster: Cluster) -> None:
        del cluster
        if moment == "prepare":
            raise EnvironmentFault("no room for it")
        if moment == "cancel":
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
            await asyncio.sleep(0)

    if moment == "the image":
        emulator.conditions.denied_actions.add("CreateImage")
    kinds = {"prepare": EnvironmentFault, "cancel": asyncio.CancelledError}
    with pytest.raises(kinds.get(moment, Exception)):
        asyncio.run(bake(desk, wish(1), NAME, prepare))
    assert emulator.inventory() == strangers
    assert desk.ledger.clusters() == ()


@dataclass
class Oven:
    """An account with strangers in it, who bakes there and is killed, and who comes after."""

    emulator: Emulator
    zygote: Zygote
    survivor: Desk
    home: str
    before: Inventory

    def calls(self, scene: str) -> int:
        """Carry a scene out to its end; return how many calls it makes."""
        self.emulator.calls.clear()
        assert self.zygote.run(scene, folder=self.home) == 0
        return len(self.emulator.calls.all())

    def shelve(self) -> None:
        """Put an image onto the shelf as a bake would, but without a builder of our own."""
        asyncio.run(self._shelve())

    async def _shelve(self) -> None:
        cloud = self.survivor.cloud
        foreign = next(iter(self.before["instances"])).partition("/")[2]
        request = create_image(BUILDER, foreign, NAME, 4e9)
        image_id = (await cloud.call(request))["ImageId"]
        image = (await cloud.call(image_by_id(image_id)))["Images"][0]
        ids = (image_id, *snapshot_ids(image))
        await cloud.call(give_name(ids, NAME, "ubuntu"))
        await cloud.call(take_from_cluster(ids))

    def clear(self) -> None:
        """Do what somebody does who finds half a bake: take the builder down, and the image."""
        asyncio.run(take_down(self.survivor, BUILDER))
        try:
            asyncio.run(Bakery(self.survivor, KEY.owner).remove(NAME))
        except NotFound:
            return


@pytest.fixture
def oven(
    emulator: Emulator, cloud: Ec2Cloud, strangers: Inventory, tmp_path: Path
) -> Iterator[Oven]:
    """Return a place to be killed at."""
    home = tmp_path / "home"
    with Zygote(emulator.environ) as zygote:
        yield Oven(emulator, zygote, desk_at(cloud, home), str(home), strangers)


@pytest.mark.e2e
def test_killed_at_every_call_of_bake(oven: Oven, record_property: Tell) -> None:
    """One `down` of the builder, and `bake rm` where an image was named: nothing is left.

    Until it is named, an image goes with its builder: `down` alone removes all of it.
    """
    moments = list(points(oven.calls(BAKE)))
    oven.clear()
    named = 0
    for point in moments:
        with point.armed(oven.emulator):
            oven.zygote.must_die(BAKE, folder=oven.home)
        shelf = asyncio.run(Bakery(oven.survivor, KEY.owner).shelf(NAME))
        named += bool(shelf)
        if not shelf:
            asyncio.run(take_down(oven.survivor, BUILDER))
        else:
            oven.clear()
        assert oven.emulator.inventory() == oven.before, point
        assert oven.survivor.ledger.clusters() == (), point
    assert 0 < named < len(moments)
    record_property("told", f"bake was killed at {len(moments)} points")


@pytest.mark.e2e
def test_bake_goes_on_where_it_was_killed(oven: Oven) -> None:
    """The same command again makes one image of it, whatever was there."""
    oven.emulator.calls.clear()
    assert oven.zygote.run(BAKE, folder=oven.home) == 0
    changes = len(oven.emulator.calls.changing())
    oven.clear()
    for point in points(changes, changing_only=True):
        with point.armed(oven.emulator):
            oven.zygote.must_die(BAKE, folder=oven.home)
        try:
            asyncio.run(bake(oven.survivor, wish(1), NAME, nothing))
        except AlreadyThere:  # it was complete already; only its builder may be there
            asyncio.run(take_down(oven.survivor, BUILDER))
        left = new_images(oven.emulator, oven.before)
        assert left == {"images": 1, "snapshots": 1}, point
        oven.clear()
        assert oven.emulator.inventory() == oven.before, point


@pytest.mark.e2e
def test_killed_at_every_call_of_bake_rm(oven: Oven, record_property: Tell) -> None:
    """Wherever it is killed, the same command again removes the rest."""
    oven.shelve()
    moments = list(points(oven.calls(REMOVE)))
    for point in moments:
        oven.shelve()
        with point.armed(oven.emulator):
            oven.zygote.must_die(REMOVE, folder=oven.home)
        oven.clear()
        assert oven.emulator.inventory() == oven.before, point
    record_property("told", f"bake rm was killed at {len(moments)} points")


def test_reap_finds_a_builder_without_a_ledger(oven: Oven, cloud: Ec2Cloud, tmp_path: Path) -> None:
    """Half a bake of a machine that is lost is found by its tags, the image included."""
    oven.calls(BAKE)
    calls = [call.action for call in oven.emulator.calls.all()]
    last = len(calls) - calls[::-1].index("CreateTags")
    oven.clear()
    point = list(points(last))[-2]
    with point.armed(oven.emulator):
        oven.zygote.must_die(BAKE, folder=oven.home)
    assert new_images(oven.emulator, oven.before)["images"] == 1
    elsewhere = desk_at(cloud, tmp_path / "elsewhere")
    found = asyncio.run(find_strays(elsewhere, KEY.owner))
    assert [stray.key for stray in found] == [BUILDER]
    asyncio.run(reap(elsewhere, found))
    assert oven.emulator.inventory() == oven.before


@pytest.mark.e2e
def test_killed_at_every_call_of_a_study(oven: Oven, record_property: Tell) -> None:
    """Wherever work on rented hosts is killed, one `down` leaves nothing of ours."""
    moments = list(points(oven.calls(STUDY)))
    assert oven.emulator.inventory() == oven.before
    for point in moments:
        with point.armed(oven.emulator):
            oven.zygote.must_die(STUDY, folder=oven.home)
        asyncio.run(take_down(oven.survivor, KEY))
        assert oven.emulator.inventory() == oven.before, point
        assert oven.survivor.ledger.clusters() == (), point
    record_property("told", f"study was killed at {len(moments)} points")
