"""Faults on demand: what they are called, which replace which, and what cannot be meant."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import cast

import pytest

from paceline.errors import NotFound, PlanError, UsageError
from paceline.rehearsal.daemon.faults import Faults
from paceline.rehearsal.emulator import Emulator
from paceline.rehearsal.machines.rehearsal import Rehearsal
from tests.unit.rehearsal.emulator.conftest import UBUNTU, client


@dataclass
class Body:
    """A machine that notes what is done to it."""

    done: list[str] = field(default_factory=list)

    def cut(self) -> None:
        """Be cut off."""
        self.done.append("cut")

    def mend(self) -> None:
        """Be connected."""
        self.done.append("mend")

    def shape(self, rate_mbit: float | None) -> None:
        """Have another link."""
        self.done.append(f"shape {rate_mbit}")


class Scene:
    """An account with one machine, and the faults that can befall it."""

    def __init__(self, emulator: Emulator, instance_id: str) -> None:
        self.id = instance_id
        self.address = emulator.instances()[0].private_address
        self.emulator = emulator
        self.body = Body()
        keeper = SimpleNamespace(body=lambda _: self.body)
        self.faults = Faults(cast("Rehearsal", SimpleNamespace(emulator=emulator, keeper=keeper)))


@pytest.fixture
def scene() -> Iterator[Scene]:
    """Return an account with one machine."""
    with Emulator() as emulator:
        image = client(emulator, "ssm").get_parameter(Name=UBUNTU)["Parameter"]["Value"]
        made = client(emulator).run_instances(
            ImageId=image, InstanceType="m5.large", MinCount=1, MaxCount=1
        )
        yield Scene(emulator, made["Instances"][0]["InstanceId"])


def test_a_machine_has_several_names_and_one_fault(scene: Scene) -> None:
    """By whichever name, it is the same fault; any name undoes it."""
    said = scene.faults.set("cut", [scene.address])
    assert said == f"cut {scene.id}: in force, until it is undone"
    assert scene.faults.set("cut", [scene.id]) == f"cut {scene.id}: is in force already"
    assert scene.faults.undo("cut", [scene.address]) == f"cut {scene.id}: undone"
    assert scene.body.done == ["cut", "mend"]
    assert scene.faults.in_force() == ()


def test_the_newest_of_a_kind_is_in_force(scene: Scene) -> None:
    """A slower link, or another share of calls, takes the place of the one before."""
    for rate in ("20mbit", "10mbit"):
        scene.faults.set("slow-link", [scene.id, rate])
    for share in ("0.2", "0.3"):
        scene.faults.set("throttle", [share])
    assert scene.faults.in_force() == (f"slow-link {scene.id} 10mbit", "throttle 0.3")
    scene.faults.undo("slow-link", [])
    scene.faults.undo("throttle", ["0.3"])
    assert scene.body.done == ["shape 20.0", "shape 10.0", "shape None"]
    assert scene.faults.in_force() == ()
    assert all(scene.emulator.faults.striking(call) is None for call in scene.emulator.calls.all())


def test_a_fault_goes_with_its_machine(scene: Scene) -> None:
    """What is gone is neither cut off any more nor to be connected again."""
    scene.faults.set("cut", [scene.id])
    scene.emulator.regions["us-east-1"].terminate(scene.emulator.instances()[0], "Client.x", "x")
    scene.emulator.settle()
    assert scene.faults.in_force() == ()
    with pytest.raises(NotFound):
        scene.faults.undo("cut", [])


def test_what_cannot_be_meant_is_refused(scene: Scene) -> None:
    """A zone that does not exist, a share that is none, a notice taken back."""
    with pytest.raises(UsageError, match="no zone us-east-1q") as caught:
        scene.faults.set("no-capacity", ["us-east-1q"])
    assert "us-east-1a" in (caught.value.hint or "")
    for share in ("2", "30%", "0"):
        with pytest.raises(UsageError, match="no share"):
            scene.faults.set("throttle", [share])
    with pytest.raises(UsageError, match="cannot be undone"):
        scene.faults.undo("spot-interruption", [scene.id])
    with pytest.raises(PlanError, match="spot market"):
        scene.faults.set("spot-interruption", [scene.id])
    with pytest.raises(UsageError, match="there is no fault"):
        scene.faults.undo("nonsense", [])
    assert scene.faults.in_force() == ()


def test_no_room_anywhere(scene: Scene) -> None:
    """Every zone, or one, has no room until it is undone."""
    for zone in ("*", "eu-west-1b"):
        scene.faults.set("no-capacity", [zone])
        assert scene.emulator.conditions.room("eu-west-1b", "m5.large") == 0
        scene.faults.undo("no-capacity", [zone])
        assert scene.emulator.conditions.room("eu-west-1b", "m5.large") is None
