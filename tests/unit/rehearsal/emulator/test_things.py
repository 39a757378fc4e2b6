"""Disks, images, groups, spot, prices: what the emulated EC2 says about them, and its laws."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import asyncssh
import pytest

from paceline.planning.prices import packaged_prices
from paceline.rehearsal.emulator import Emulator
from tests.unit.rehearsal.emulator.conftest import Client, client, code_of

DEEP_LEARNING = "/aws/service/deeplearning/ami/x86_64"
Launch = Callable[..., list[str]]


def tags(kind: str) -> list[dict[str, Any]]:
    """Return the words that tag a new resource."""
    return [{"ResourceType": kind, "Tags": [{"Key": "owner", "Value": "us"}]}]


def test_a_volume_is_as_it_was_asked_for(ec2: Client, launch: Launch) -> None:
    """Size, type, speed, encryption and tags of the root disk are kept."""
    wish = {"VolumeSize": 16, "VolumeType": "gp3", "Throughput": 200, "Encrypted": True}
    mapping = [{"DeviceName": "/dev/sda1", "Ebs": wish}]
    launch(BlockDeviceMappings=mapping, TagSpecifications=tags("volume"))
    (volume,) = ec2.describe_volumes()["Volumes"]
    kept = {key: volume[key] for key in ("Size", "VolumeType", "Throughput", "Encrypted")}
    assert kept == {"Size": 16, "VolumeType": "gp3", "Throughput": 200, "Encrypted": True}
    assert volume["Tags"] == [{"Key": "owner", "Value": "us"}]
    assert code_of(lambda: ec2.delete_volume(VolumeId=volume["VolumeId"])) == "VolumeInUse"


def test_disks_and_addresses_go_with_their_instance(
    emulator: Emulator, ec2: Client, launch: Launch
) -> None:
    """After the end, only the disk remains that was to remain."""
    kept = {"DeviceName": "/dev/sdb", "Ebs": {"VolumeSize": 1, "DeleteOnTermination": False}}
    ids = launch(BlockDeviceMappings=[kept])
    assert len(emulator.inventory()["volumes"]) == 2
    ec2.terminate_instances(InstanceIds=ids)
    held = emulator.inventory()
    assert (len(held["volumes"]), held["interfaces"], held["instances"]) == (1, {}, {})


def test_an_image_keeps_its_disks_and_tags(ec2: Client, launch: Launch) -> None:
    """An image of an instance has its disk's size and encryption, and tagged snapshots."""
    wish = [{"DeviceName": "/dev/sda1", "Ebs": {"VolumeSize": 20, "Encrypted": True}}]
    (one,) = launch(BlockDeviceMappings=wish)
    made = ec2.create_image(
        InstanceId=one, Name="baked", TagSpecifications=tags("image") + tags("snapshot")
    )
    (image,) = ec2.describe_images(Owners=["self"])["Images"]
    assert image["ImageId"] == made["ImageId"]
    assert image["Tags"] == [{"Key": "owner", "Value": "us"}]
    disk = image["BlockDeviceMappings"][0]["Ebs"]
    assert (disk["VolumeSize"], disk["Encrypted"]) == (20, True)
    (still,) = ec2.describe_snapshots(OwnerIds=["self"])["Snapshots"]
    assert (still["SnapshotId"], still["VolumeSize"]) == (disk["SnapshotId"], 20)
    assert still["Tags"] == [{"Key": "owner", "Value": "us"}]


def test_an_images_name_is_its_own(ec2: Client, launch: Launch) -> None:
    """A second image of the same name is refused, until the first is gone."""
    (one,) = launch()
    image = ec2.create_image(InstanceId=one, Name="baked")["ImageId"]
    again = partial(ec2.create_image, InstanceId=one, Name="baked")
    assert code_of(again) == "InvalidAMIName.Duplicate"
    ec2.deregister_image(ImageId=image)
    again()


def test_an_image_takes_its_time(emulator: Emulator, ec2: Client, launch: Launch) -> None:
    """An image that is still being made cannot be launched."""
    (one,) = launch()
    emulator.conditions.image_s = 1000
    image = ec2.create_image(InstanceId=one, Name="baked")["ImageId"]
    assert ec2.describe_images(ImageIds=[image])["Images"][0]["State"] == "pending"
    assert code_of(lambda: launch(ImageId=image)) == "InvalidAMIID.Unavailable"


@pytest.mark.parametrize("together", [True, False])
def test_snapshots_of_an_image(ec2: Client, launch: Launch, *, together: bool) -> None:
    """A snapshot goes after its image or with it, never before."""
    (one,) = launch()
    image = ec2.create_image(InstanceId=one, Name="baked")["ImageId"]
    still = ec2.describe_snapshots(OwnerIds=["self"])["Snapshots"][0]["SnapshotId"]
    assert code_of(lambda: ec2.delete_snapshot(SnapshotId=still)) == "InvalidSnapshot.InUse"
    ec2.deregister_image(ImageId=image, DeleteAssociatedSnapshots=together)
    left = ec2.describe_snapshots(OwnerIds=["self"])["Snapshots"]
    assert len(left) == (0 if together else 1)
    if not together:
        ec2.delete_snapshot(SnapshotId=still)


def test_a_security_group_in_use_stays(ec2: Client, launch: Launch) -> None:
    """A group cannot go while an instance or another group's rule has it."""
    first, second = (
        ec2.create_security_group(GroupName=name, Description="d")["GroupId"]
        for name in ("one", "two")
    )
    rule = [{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": first}]}]
    for group in (first, second):
        ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=rule)
    ids = launch(SecurityGroupIds=[first])
    delete = partial(ec2.delete_security_group, GroupId=first)
    assert code_of(delete) == "DependencyViolation"
    ec2.terminate_instances(InstanceIds=ids)
    assert code_of(delete) == "DependencyViolation"
    ec2.delete_security_group(GroupId=second)
    delete()
    again = partial(ec2.describe_security_groups, GroupIds=[first])
    assert code_of(again) == "InvalidGroup.NotFound"


def test_placement_groups(ec2: Client, launch: Launch) -> None:
    """They are made once, named by instances, refused to small types, and deleted when free."""
    made = ec2.create_placement_group(
        GroupName="near", Strategy="cluster", TagSpecifications=tags("placement-group")
    )
    assert made["PlacementGroup"]["State"] == "available"
    twice = partial(ec2.create_placement_group, GroupName="near")
    assert code_of(twice) == "InvalidPlacementGroup.Duplicate"
    inside = {"Placement": {"GroupName": "near"}}
    assert code_of(lambda: launch(InstanceType="t3.micro", **inside)) == (
        "InvalidParameterCombination"
    )
    ids = launch(**inside)
    facts = ec2.describe_instances(InstanceIds=ids)["Reservations"][0]["Instances"][0]
    assert facts["Placement"]["GroupName"] == "near"
    delete = partial(ec2.delete_placement_group, GroupName="near")
    assert code_of(delete) == "InvalidPlacementGroup.InUse"
    ec2.terminate_instances(InstanceIds=ids)
    (group,) = ec2.describe_placement_groups(Filters=[{"Name": "tag:owner", "Values": ["us"]}])[
        "PlacementGroups"
    ]
    assert group["GroupName"] == "near"
    delete()
    assert code_of(delete) == "InvalidPlacementGroup.Unknown"


def test_a_spread_group_has_room_for_seven_in_a_zone(ec2: Client, launch: Launch) -> None:
    """An eighth instance in one zone is refused."""
    ec2.create_placement_group(GroupName="far", Strategy="spread")
    inside = {"Placement": {"GroupName": "far", "AvailabilityZone": "us-east-1a"}}
    launch(7, **inside)
    assert code_of(lambda: launch(1, **inside)) == "InsufficientInstanceCapacity"


def test_spot_instances_have_a_request_and_a_price(
    emulator: Emulator, ec2: Client, launch: Launch
) -> None:
    """A spot launch makes a request; its price is near the mean of the packaged prices."""
    market = {"MarketType": "spot", "SpotOptions": {"SpotInstanceType": "one-time"}}
    (one,) = launch(InstanceMarketOptions=market)
    (request,) = ec2.describe_spot_instance_requests()["SpotInstanceRequests"]
    assert (request["InstanceId"], request["State"]) == (one, "active")
    history = ec2.describe_spot_price_history(InstanceTypes=["m5.large"])["SpotPriceHistory"]
    listed = packaged_prices().find("m5.large")
    assert listed is not None
    mean = listed.mean_spot_usd_per_hour
    assert mean is not None
    assert all(abs(float(item["SpotPrice"]) / mean - 1) < 0.1 for item in history)
    assert len({item["AvailabilityZone"] for item in history}) == len(history)
    assert code_of(lambda: ec2.stop_instances(InstanceIds=[one])) == "UnsupportedOperation"
    low = {"MarketType": "spot", "SpotOptions": {"MaxPrice": "0.0001"}}
    assert code_of(lambda: launch(InstanceMarketOptions=low)) == "SpotMaxPriceTooLow"
    emulator.interrupt(one, notice_s=0)
    facts = ec2.describe_instances(InstanceIds=[one])["Reservations"][0]["Instances"][0]
    assert facts["StateReason"]["Code"] == "Server.SpotInstanceTermination"
    assert emulator.inventory()["spot requests"] == {}


def test_key_pairs_by_name_and_by_id(emulator: Emulator, ec2: Client) -> None:
    """A key is imported once, found by its id, and deleted by it."""
    public = asyncssh.generate_private_key("ssh-ed25519").export_public_key().decode()
    made = ec2.import_key_pair(KeyName="mine", PublicKeyMaterial=public.encode())
    twice = partial(ec2.import_key_pair, KeyName="mine", PublicKeyMaterial=b"x")
    assert code_of(twice) == "InvalidKeyPair.Duplicate"
    (found,) = ec2.describe_key_pairs(KeyPairIds=[made["KeyPairId"]])["KeyPairs"]
    assert found["KeyName"] == "mine"
    ec2.delete_key_pair(KeyPairId=made["KeyPairId"])
    assert emulator.inventory()["key pairs"] == {}
    assert code_of(lambda: ec2.describe_key_pairs(KeyNames=["mine"])) == "InvalidKeyPair.NotFound"


def test_prices_are_the_packaged_ones(emulator: Emulator) -> None:
    """The price list answers with what the package knows, in AWS's own form."""
    asked = {"instanceType": "m5.large", "regionCode": "us-east-1", "operatingSystem": "Linux"}
    filters = [{"Type": "TERM_MATCH", "Field": key, "Value": value} for key, value in asked.items()]
    found = client(emulator, "pricing").get_products(ServiceCode="AmazonEC2", Filters=filters)
    (product,) = (json.loads(text) for text in found["PriceList"])
    (offer,) = product["terms"]["OnDemand"].values()
    (dimension,) = offer["priceDimensions"].values()
    listed = packaged_prices().find("m5.large")
    assert listed is not None
    assert float(dimension["pricePerUnit"]["USD"]) == listed.on_demand_usd_per_hour


@pytest.mark.parametrize(
    "name",
    [
        "/aws/service/canonical/ubuntu/server/20.04/stable/current/amd64/hvm/ebs-gp2/ami-id",
        "/aws/service/canonical/ubuntu/server/jammy/stable/current/arm64/hvm/ebs-gp2/ami-id",
        "/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-x86_64",
        f"{DEEP_LEARNING}/oss-nvidia-driver-gpu-pytorch-2.7-ubuntu-22.04/latest/ami-id",
    ],
)
def test_public_parameters_lead_to_images(emulator: Emulator, ec2: Client, name: str) -> None:
    """Each public parameter names an image that can be described."""
    ssm = client(emulator, "ssm")
    image = ssm.get_parameters(Names=[name, "/no/such"])
    assert image["InvalidParameters"] == ["/no/such"]
    (facts,) = ec2.describe_images(ImageIds=[image["Parameters"][0]["Value"]])["Images"]
    assert facts["State"] == "available"
    arm = "arm64" in name
    assert facts["Architecture"] == ("arm64" if arm else "x86_64")


def test_who_asks_is_told(emulator: Emulator) -> None:
    """The identity is that of the account, and a wrong key is nobody's."""
    sts = client(emulator, "sts")
    assert sts.get_caller_identity()["Account"] == "123456789012"
    other = client(emulator)
    emulator.door.key_id = "AKIAOTHER"
    assert code_of(other.describe_vpcs) == "AuthFailure"


def test_two_accounts_share_nothing(emulator: Emulator, launch: Launch) -> None:
    """What one emulator holds, another does not see."""
    launch()
    with Emulator() as other:
        assert other.inventory()["instances"] == {}
        assert other.regions["us-east-1"].tags == {}
    assert len(emulator.inventory()["instances"]) == 1
