"""Instances of the emulated EC2 behave as those of EC2 do, where the library behind does not."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import pytest

from paceline.rehearsal.emulator import Conditions, Emulator
from tests.unit.rehearsal.emulator.conftest import Client, client, code_of

Launch = Callable[..., list[str]]


def described(ec2: Client, one: str) -> dict[str, Any]:
    """Return what EC2 says about an instance."""
    found: dict[str, Any] = ec2.describe_instances(InstanceIds=[one])["Reservations"][0]
    return dict(found["Instances"][0])


def test_a_client_token_launches_once(ec2: Client, launch: Launch) -> None:
    """The same request again gets the same instances, and no others come to be."""
    first = launch(2, ClientToken="a")
    assert launch(2, ClientToken="a") == first
    assert len(launch(1, ClientToken="b")) == 1
    assert len(ec2.describe_instances()["Reservations"]) == 2


def test_a_client_token_belongs_to_one_request(ec2: Client, launch: Launch) -> None:
    """Another request with the same token is refused, and so is one for what has ended."""
    (one,) = launch(1, ClientToken="a")
    assert code_of(lambda: launch(2, ClientToken="a")) == "IdempotentParameterMismatch"
    ec2.terminate_instances(InstanceIds=[one])
    assert code_of(lambda: launch(1, ClientToken="a")) == "IdempotentInstanceTerminated"


def test_as_many_as_there_is_room_for(emulator: Emulator, launch: Launch) -> None:
    """Between the least and the most, a launch takes what the zone has; below, nothing."""
    emulator.limit_capacity(2)
    assert code_of(lambda: launch(3)) == "InsufficientInstanceCapacity"
    assert len(launch(1, MaxCount=3)) == 2
    assert code_of(lambda: launch(1)) == "InsufficientInstanceCapacity"
    emulator.lift_limits()
    assert len(launch(3)) == 3


def test_the_next_zone_has_room(emulator: Emulator, ec2: Client, launch: Launch) -> None:
    """Without a zone of the caller's choice, another one that has room is taken."""
    emulator.limit_capacity(zone="us-east-1a")
    (one,) = launch()
    assert described(ec2, one)["Placement"]["AvailabilityZone"] == "us-east-1b"
    asked = {"Placement": {"AvailabilityZone": "us-east-1a"}}
    assert code_of(lambda: launch(**asked)) == "InsufficientInstanceCapacity"


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ({"InstanceType": "m5.huge"}, "InvalidParameterValue"),
        ({"InstanceType": "m6g.large"}, "InvalidParameterValue"),
        ({"ImageId": "ami-00000000000000000"}, "InvalidAMIID.NotFound"),
        ({"ImageId": "ubuntu"}, "InvalidAMIID.Malformed"),
        ({"KeyName": "nobody's"}, "InvalidKeyPair.NotFound"),
        ({"SecurityGroupIds": ["sg-00000000000000000"]}, "InvalidGroup.NotFound"),
        ({"Placement": {"GroupName": "none"}}, "InvalidPlacementGroup.Unknown"),
        ({"Placement": {"AvailabilityZone": "us-east-1z"}}, "InvalidParameterValue"),
        ({"MinCount": 2, "MaxCount": 1}, "InvalidParameterValue"),
        (
            {"BlockDeviceMappings": [{"DeviceName": "/dev/sda1", "Ebs": {"VolumeSize": 4}}]},
            "InvalidBlockDeviceMapping",
        ),
        (
            {
                "BlockDeviceMappings": [
                    {"DeviceName": "/dev/sda1", "Ebs": {"VolumeType": "gp2", "Throughput": 200}}
                ]
            },
            "InvalidParameterCombination",
        ),
    ],
)
def test_what_does_not_exist_is_refused(
    emulator: Emulator, launch: Launch, words: dict[str, Any], code: str
) -> None:
    """A request with a word that means nothing launches nothing."""
    assert code_of(lambda: launch(**words)) == code
    assert emulator.instances() == []


def test_addresses_begin_at_the_fourth_and_are_used_again(ec2: Client, launch: Launch) -> None:
    """Private addresses are those of the zone's subnet, and return to it."""
    first, second = launch(2)
    assert described(ec2, first)["PrivateIpAddress"] == "172.31.0.4"
    assert described(ec2, second)["PrivateIpAddress"] == "172.31.0.5"
    subnet = described(ec2, first)["SubnetId"]
    zone = ec2.describe_subnets(SubnetIds=[subnet])["Subnets"][0]["AvailabilityZone"]
    assert zone == described(ec2, first)["Placement"]["AvailabilityZone"]
    ec2.terminate_instances(InstanceIds=[first])
    ec2.describe_instances()
    assert described(ec2, launch()[0])["PrivateIpAddress"] == "172.31.0.4"


def test_states_take_their_time() -> None:
    """An instance is pending, then runs, then passes its checks; it ends the same way."""
    with Emulator(Conditions(boot_s=1000, stop_s=1000)) as emulator:
        ec2 = client(emulator)
        image = next(iter(emulator.regions["us-east-1"].images))
        made = ec2.run_instances(ImageId=image, MinCount=1, MaxCount=1, InstanceType="m5.large")
        one = made["Instances"][0]["InstanceId"]
        assert described(ec2, one)["State"]["Name"] == "pending"
        assert ec2.describe_instance_status()["InstanceStatuses"] == []
        emulator.conditions.boot_s = 0
        emulator.instances()[0].settles_at = 0.0
        assert described(ec2, one)["State"] == {"Name": "running", "Code": 16}
        emulator.conditions.checks_s = 1e12
        checks = ec2.describe_instance_status(InstanceIds=[one])["InstanceStatuses"][0]
        assert checks["InstanceStatus"]["Status"] == "initializing"
        change = ec2.terminate_instances(InstanceIds=[one])["TerminatingInstances"][0]
        assert change["PreviousState"]["Name"] == "running"
        assert change["CurrentState"]["Name"] == "shutting-down"


def test_what_has_ended_cannot_start(ec2: Client, launch: Launch) -> None:
    """A terminated instance stays so; a stopped one gets another public address."""
    first, second = launch(2)
    ec2.terminate_instances(InstanceIds=[first])
    assert described(ec2, first)["State"]["Name"] == "terminated"
    assert code_of(lambda: ec2.start_instances(InstanceIds=[first])) == "IncorrectInstanceState"
    before = described(ec2, second)
    ec2.stop_instances(InstanceIds=[second])
    assert "PublicIpAddress" not in described(ec2, second)
    ec2.start_instances(InstanceIds=[second])
    after = described(ec2, second)
    assert after["PrivateIpAddress"] == before["PrivateIpAddress"]
    assert after["PublicIpAddress"] != before["PublicIpAddress"]


@pytest.mark.parametrize(("behaviour", "state"), [("terminate", "terminated"), ("stop", "stopped")])
def test_its_own_shutdown_means_what_was_asked(
    emulator: Emulator, ec2: Client, launch: Launch, behaviour: str, state: str
) -> None:
    """A shutdown from inside stops or terminates, as the launch said."""
    (one,) = launch(InstanceInitiatedShutdownBehavior=behaviour)
    emulator.shut_down_from_inside(one)
    facts = described(ec2, one)
    assert facts["State"]["Name"] == state
    assert facts["StateReason"]["Code"] == "Client.InstanceInitiatedShutdown"


def test_user_data_metadata_and_tags_come_back(ec2: Client, launch: Launch) -> None:
    """What a launch was given can be read again."""
    (one,) = launch(
        UserData="#cloud-config\n",
        MetadataOptions={"HttpTokens": "required"},
        TagSpecifications=[{"ResourceType": "instance", "Tags": [{"Key": "a", "Value": "b"}]}],
    )
    found = ec2.describe_instance_attribute(InstanceId=one, Attribute="userData")["UserData"]
    assert base64.b64decode(found["Value"]) == b"#cloud-config\n"
    assert described(ec2, one)["MetadataOptions"]["HttpTokens"] == "required"
    tagged = ec2.describe_instances(Filters=[{"Name": "tag:a", "Values": ["b"]}])
    assert tagged["Reservations"][0]["Instances"][0]["InstanceId"] == one
    none = ec2.describe_instances(Filters=[{"Name": "tag:a", "Values": ["c"]}])
    assert none["Reservations"] == []


def test_a_dry_run_changes_nothing(emulator: Emulator, launch: Launch) -> None:
    """A dry run says that it would have worked, or that it may not, and does nothing."""
    assert code_of(lambda: launch(DryRun=True)) == "DryRunOperation"
    assert code_of(lambda: launch(DryRun=True, KeyName="no")) == "InvalidKeyPair.NotFound"
    emulator.conditions.denied_actions.add("RunInstances")
    assert code_of(lambda: launch(DryRun=True)) == "UnauthorizedOperation"
    assert emulator.instances() == []
    assert emulator.calls.changing() == ()


def test_quotas_count_vcpus(emulator: Emulator, ec2: Client, launch: Launch) -> None:
    """A launch above the quota is refused whole; what has ended does not count."""
    emulator.conditions.vcpu_quotas["L-1216C47A"] = 4.0
    quotas = client(emulator, "service-quotas")
    told = quotas.get_service_quota(ServiceCode="ec2", QuotaCode="L-1216C47A")["Quota"]["Value"]
    assert told == 4.0
    ids = launch(2)
    assert code_of(lambda: launch(1)) == "VcpuLimitExceeded"
    ec2.terminate_instances(InstanceIds=ids)
    assert len(launch(2)) == 2


def test_eventually_it_can_be_seen(emulator: Emulator, ec2: Client, launch: Launch) -> None:
    """The first looks after a launch find nothing, by id as by tag."""
    emulator.conditions.hidden_looks = 2
    (one,) = launch()
    assert code_of(lambda: described(ec2, one)) == "InvalidInstanceID.NotFound"
    assert ec2.describe_instances()["Reservations"] == []
    assert described(ec2, one)["InstanceId"] == one


def test_all_or_none_are_terminated(ec2: Client, launch: Launch) -> None:
    """One id that does not exist keeps the others from being terminated."""
    (one,) = launch()
    wrong = "i-00000000000000000"
    assert code_of(lambda: ec2.terminate_instances(InstanceIds=[one, wrong])) == (
        "InvalidInstanceID.NotFound"
    )
    assert described(ec2, one)["State"]["Name"] == "running"


def test_many_instances_come_in_pages(ec2: Client, launch: Launch) -> None:
    """A listing of many instances is whole, page by page."""
    ids = launch(60)
    pages = ec2.get_paginator("describe_instances").paginate(PaginationConfig={"PageSize": 25})
    found = [
        item["InstanceId"]
        for page in pages
        for reservation in page["Reservations"]
        for item in reservation["Instances"]
    ]
    assert sorted(found) == sorted(ids)
