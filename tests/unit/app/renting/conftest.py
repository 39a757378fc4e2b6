from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from paceline.app.renting import Desk
from paceline.model.ec2 import Request
from paceline.planning.ec2 import questions, requests
from paceline.planning.ec2.identity import tags_of
from paceline.planning.ec2.images import aliases
from paceline.planning.ec2.requests import tag_specifications
from paceline.providers.ec2 import Ec2Cloud
from paceline.rehearsal.emulator import Conditions, Emulator, Inventory
from tests.fakes.rented import KEY, SshWorld, desk_at, quick_key


@pytest.fixture(scope="session")
def account() -> Iterator[tuple[Emulator, Ec2Cloud]]:
    """Return an account, and a way to it that has everything loaded."""
    with Emulator() as emulator, pytest.MonkeyPatch.context() as patch:
        for name, value in emulator.environ.items():
            patch.setenv(name, value)
        patch.delenv("AWS_PROFILE", raising=False)
        yield emulator, Ec2Cloud(emulator.region)


@pytest.fixture
def emulator(account: tuple[Emulator, Ec2Cloud]) -> Emulator:
    """Return the account as a new one, which holds nothing."""
    made = account[0]
    made.regions.made.clear()
    made.faults.clear()
    made.calls.clear()
    vars(made.conditions).update(vars(Conditions()))
    return made


@pytest.fixture
def cloud(account: tuple[Emulator, Ec2Cloud], emulator: Emulator) -> Ec2Cloud:
    """Return the way to it."""
    del emulator
    return account[1]


@pytest.fixture
def world() -> SshWorld:
    """Return the hosts that answer."""
    return SshWorld()


@pytest.fixture
def desk(cloud: Ec2Cloud, tmp_path: Path, world: SshWorld) -> Desk:
    """Return a desk in that account."""
    return desk_at(cloud, tmp_path / "home", world=world)


@pytest.fixture
def strangers(emulator: Emulator, cloud: Ec2Cloud) -> Inventory:
    """Put things of others into the account; return all that it holds then.

    One of them has a cluster of the very same name, and one has put our name on his group.
    """
    asyncio.run(_move_in(cloud))
    emulator.calls.clear()
    return emulator.inventory()


async def _move_in(cloud: Ec2Cloud) -> None:
    other = replace(KEY, owner="bob@desk")
    at = 4_000_000_000.0
    vpc = (await cloud.call(questions.subnets(None)))["Subnets"][0]["VpcId"]
    await cloud.call(requests.import_key(other, quick_key().public, at))
    group = await cloud.call(requests.create_group(other, vpc, at))
    await cloud.call(requests.create_placement(other, "spread", at))
    subnet = (await cloud.call(questions.subnets(None)))["Subnets"][0]["SubnetId"]
    parameter = aliases("x86_64")["ubuntu-24.04"].parameters[0]
    named = await cloud.call(questions.parameters([parameter]))
    plain = {
        "ImageId": named["Parameters"][0]["Value"],
        "InstanceType": "m5.large",
        "MinCount": 1,
        "MaxCount": 1,
    }
    await cloud.call(Request("RunInstances", {**plain, "SubnetId": subnet}))
    tagged = tag_specifications(tags_of(other, at), "instance", "volume")
    words = {**plain, "SecurityGroupIds": [group["GroupId"]], "TagSpecifications": tagged}
    await cloud.call(Request("RunInstances", words))
    zone = {"AvailabilityZone": "us-east-1a", "Size": 1}
    await cloud.call(Request("CreateVolume", zone))


@pytest.fixture
def quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let boto3 wait for nothing before it tries again."""
    import botocore.endpoint

    class NoTime:
        def __getattr__(self, name: str) -> object:
            return getattr(time, name)

        def sleep(self, seconds: float) -> None:
            del seconds

    monkeypatch.setattr(botocore.endpoint, "time", NoTime())


@pytest.fixture
def until(desk: Desk) -> Callable[[str], Desk]:
    """Return what makes a desk whose work is cancelled when it comes to a certain step."""

    def make(word: str) -> Desk:
        class Canceller:
            def step(self, text: str) -> None:
                if text.startswith(word):
                    task = asyncio.current_task()
                    assert task is not None
                    task.cancel()

            def progress(self, done: int, total: int, what: str) -> None:
                del done, total, what

        return replace(desk, watcher=Canceller())

    return make
