"""Images of our own, made and removed on the emulated EC2."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest

from paceline.app.bakery import Bakery, not_yet
from paceline.app.renting import Desk
from paceline.errors import AlreadyThere, CloudError, NotFound
from paceline.model.ec2 import Request
from paceline.model.ledger import EntryState
from paceline.planning.ec2.baking import builder_key, create_image
from paceline.planning.ec2.identity import CLUSTER_TAG, EXPIRY_TAG, OWNER_TAG
from paceline.planning.ec2.questions import by_id
from paceline.planning.ec2.rights import RIGHTS
from paceline.rehearsal.emulator import Emulator, Fault

T = TypeVar("T")
KEY = builder_key("base", "me", "us-east-1")
EXPIRES_AT = 4e9


@pytest.fixture
def bakery(desk: Desk) -> Bakery:
    """Return a bakery in that account."""
    return Bakery(desk, "me")


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a use case."""
    return asyncio.run(work)


def builder(bakery: Bakery) -> str:
    """Launch a host to make an image of."""
    words = {"ImageId": "ami-0", "InstanceType": "m5.large", "MinCount": 1, "MaxCount": 1}
    found = run(
        bakery.desk.cloud.call(
            Request("DescribeImages", {"Filters": [{"Name": "name", "Values": ["*noble-24.04*"]}]})
        )
    )
    words["ImageId"] = found["Images"][0]["ImageId"]
    made = run(bakery.desk.cloud.call(Request("RunInstances", words)))
    return str(made["Instances"][0]["InstanceId"])


def bake(bakery: Bakery, instance_id: str) -> Any:
    """Make the image `base` of a host."""
    return run(bakery.image_of(KEY, instance_id, "base", user="ubuntu", expires_at=EXPIRES_AT))


def tags_of(bakery: Bakery, image_id: str) -> dict[str, str]:
    """Return the tags of an image."""
    found = run(bakery.desk.cloud.call(by_id("image", [image_id])))["Images"][0]
    return {item["Key"]: item["Value"] for item in found["Tags"]}


def test_an_image_is_made_named_and_outlives_its_builder(
    bakery: Bakery, emulator: Emulator
) -> None:
    """The builder is off while it is made; in the end nothing ties the image to a cluster."""
    host = builder(bakery)
    made = bake(bakery, host)
    assert [item.state for item in emulator.instances()] == ["stopped"]
    (shown,) = run(bakery.shelf())
    assert (shown.name, shown.id, shown.state, shown.whole) == ("base", made.id, "available", True)
    assert (shown.user, len(shown.snapshots)) == ("ubuntu", 1)
    tags = tags_of(bakery, made.id)
    assert tags[OWNER_TAG] == "me"
    assert not {CLUSTER_TAG, EXPIRY_TAG} & tags.keys()
    assert run(bakery.shelf("base")) == (shown,)
    assert isinstance(not_yet("base", (shown,)), AlreadyThere)
    (entry,) = [item for item in bakery.desk.ledger.entries(KEY) if item.kind == "image"]
    assert (entry.state, entry.resource_id) == (EntryState.GONE, made.id)


def test_a_lost_reply_makes_no_second_image(bakery: Bakery, emulator: Emulator) -> None:
    """The image that was made all the same is found by its name and taken over."""
    host = builder(bakery)
    emulator.faults.add(Fault("lose-reply", action="CreateImage"))
    made = bake(bakery, host)
    assert list(emulator.inventory()["images"]) == [f"us-east-1/{made.id}"]
    assert len(emulator.inventory()["snapshots"]) == 1


def test_somebody_elses_image_of_that_name_is_left_alone(
    bakery: Bakery, emulator: Emulator
) -> None:
    """A name that is taken by what does not bear our tags is said to be so."""
    host = builder(bakery)
    foreign = dict(create_image(KEY, host, "base", EXPIRES_AT).parameters)
    foreign.pop("TagSpecifications")
    run(bakery.desk.cloud.call(Request("CreateImage", foreign)))
    with pytest.raises(AlreadyThere, match="somebody else"):
        bake(bakery, host)
    assert len(emulator.inventory()["images"]) == 1


def test_removing_takes_the_snapshots_along(bakery: Bakery, emulator: Emulator) -> None:
    """Also those whose image went away before; what is not there is not found."""
    made = bake(bakery, builder(bakery))
    run(bakery.desk.cloud.call(Request("DeregisterImage", {"ImageId": made.id})))
    assert len(emulator.inventory()["snapshots"]) == 1
    run(bakery.remove("base"))
    assert emulator.inventory()["images"] == emulator.inventory()["snapshots"] == {}
    with pytest.raises(NotFound, match="no image 'base'"):
        run(bakery.remove("base"))


def test_a_builder_that_somebody_ended_makes_no_image(bakery: Bakery, emulator: Emulator) -> None:
    """It is said, and nothing is waited for."""
    host = builder(bakery)
    run(bakery.desk.cloud.call(Request("StopInstances", {"InstanceIds": [host]})))
    run(bakery.desk.cloud.call(Request("TerminateInstances", {"InstanceIds": [host]})))
    with pytest.raises(CloudError):
        bake(bakery, host)
    assert emulator.inventory()["images"] == {}


def test_every_call_of_the_bakery_is_in_the_policy(bakery: Bakery, emulator: Emulator) -> None:
    """Nothing is sent that the least policy does not allow."""
    host = builder(bakery)
    emulator.calls.clear()
    bake(bakery, host)
    run(bakery.shelf())
    run(bakery.remove("base"))
    called = {call.action for call in emulator.calls.all()}
    assert called == {
        "StopInstances", "DescribeInstances", "CreateImage", "DescribeImages", "CreateTags",
        "DeleteTags", "DescribeSnapshots", "DeregisterImage", "DeleteSnapshot",
    }  # fmt: skip
    assert called <= {right.action for right in RIGHTS}
