from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from paceline.app.provision import bring_up
from paceline.app.renting import Desk
from paceline.app.teardown import take_down
from paceline.providers.ec2 import Ec2Cloud
from paceline.rehearsal.emulator import Emulator, Inventory
from tests.fakes.rented import KEY, desk_at, wish
from tests.killing import Point, Zygote, points

pytestmark = pytest.mark.e2e  # it starts and kills a hundred processes
UP, DOWN = "tests.fakes.scenes:up", "tests.fakes.scenes:down"
NODES = 2
Tell = Callable[[str, object], None]


@dataclass
class Arena:
    """An account with strangers in it, who is killed there, and who comes after."""

    emulator: Emulator
    zygote: Zygote
    survivor: Desk
    home: str
    before: Inventory

    def moments(self, scene: str) -> list[Point]:
        """Return every moment of a scene, before and after each of its calls."""
        self.emulator.calls.clear()
        assert self.zygote.run(scene, folder=self.home) == 0
        return list(points(len(self.emulator.calls.all())))

    def kill(self, scene: str, point: Point) -> None:
        """Carry a scene out in a process that is killed there."""
        with point.armed(self.emulator):
            self.zygote.must_die(scene, folder=self.home)

    def up(self) -> int:
        """Bring the cluster up; return how many hosts it has."""
        return len(asyncio.run(bring_up(self.survivor, wish(NODES))).hosts)

    def down(self) -> None:
        """Take down what is there."""
        asyncio.run(take_down(self.survivor, KEY))

    def must_be_as_before(self, point: Point) -> None:
        """Take down what is there once, and find nothing of ours and everything of others."""
        self.down()
        assert self.emulator.inventory() == self.before, point
        assert not [entry for entry in self.survivor.ledger.entries(KEY) if entry.open], point
        assert self.survivor.ledger.clusters() == (), point

    def count(self) -> dict[str, int]:
        """Return how many of each kind there are."""
        return {kind: len(items) for kind, items in self.emulator.inventory().items()}


@pytest.fixture
def arena(
    emulator: Emulator, cloud: Ec2Cloud, strangers: Inventory, tmp_path: Path
) -> Iterator[Arena]:
    """Return a place to be killed at."""
    home = tmp_path / "home"
    with Zygote(emulator.environ) as zygote:
        survivor = desk_at(cloud, home)
        yield Arena(emulator, zygote, survivor, str(home), strangers)


def test_killed_at_every_call_of_up(arena: Arena, record_property: Tell) -> None:
    """Wherever `up` is killed, one `down` leaves nothing of ours and everything of others."""
    moments = arena.moments(UP)
    arena.down()
    for point in moments:
        arena.kill(UP, point)
        arena.must_be_as_before(point)
    record_property("told", f"up was killed at {len(moments)} points")


def test_killed_at_every_call_of_down(arena: Arena, record_property: Tell) -> None:
    """Wherever `down` is killed, another `down` ends what it began."""
    arena.up()
    moments = arena.moments(DOWN)
    for point in moments:
        arena.up()
        arena.kill(DOWN, point)
        arena.must_be_as_before(point)
    record_property("told", f"down was killed at {len(moments)} points")


def test_up_goes_on_where_it_was_killed(arena: Arena) -> None:
    """After a kill at any change, `up` again makes one cluster of it, and nothing twice.

    What was made just before the kill cannot be seen for some looks, as on the real EC2.
    """
    assert arena.up() == NODES
    expected = arena.count()
    changes = len(arena.emulator.calls.changing())
    arena.down()
    arena.emulator.conditions.hidden_looks = 2
    for point in points(changes, changing_only=True):
        arena.kill(UP, point)
        assert (arena.up(), arena.count()) == (NODES, expected), point
        arena.must_be_as_before(point)
