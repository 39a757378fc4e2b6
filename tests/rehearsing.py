"""Machines of a rehearsed EC2, for tests: launched by plain boto3, reached by plain ssh."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import boto3
import pytest

from paceline.rehearsal.daemon.card import Card, read_card
from paceline.rehearsal.emulator import Emulator
from tests import lab

UBUNTU = "/aws/service/canonical/ubuntu/server/24.04/stable/current/amd64/hvm/ebs-gp3/ami-id"
_WITHIN_S = 90.0
Client = Any


def skip_unless_possible() -> None:
    """Skip where no machines can be made."""
    reason = lab.missing()
    if reason is None and shutil.which("nft", path="/usr/sbin:/usr/bin:/sbin") is None:
        reason = "not installed: nft"
    if reason is None and shutil.which("sudo") is None:
        reason = "not installed: sudo"
    if reason is not None:
        pytest.skip(reason)


class Address(Protocol):
    """Where an EC2 answers, and to whom: an emulator, or the card of a rehearsal."""

    @property
    def url(self) -> str:
        """The address."""
        ...

    @property
    def region(self) -> str:
        """The region."""
        ...

    @property
    def key_id(self) -> str:
        """The caller's key."""
        ...


def client(emulator: Address, service: str = "ec2") -> Client:
    """Return a client of one service."""
    return boto3.client(  # type: ignore[call-overload]
        service,
        endpoint_url=emulator.url,
        region_name=emulator.region,
        aws_access_key_id=emulator.key_id,
        aws_secret_access_key="any",
    )


def rehearsal_of(home: Path) -> Card:
    """Return the card of the rehearsal that is up in a state folder."""
    card = read_card(home / "rehearsal/rehearsal.json")
    assert card is not None
    return card


def placement_groups(card: Card) -> dict[str, tuple[str, list[str]]]:
    """Return the strategy of each placement group, and the types of the machines in it."""
    ec2 = client(card)
    found = ec2.describe_placement_groups()["PlacementGroups"]
    made: dict[str, tuple[str, list[str]]] = {
        one["GroupName"]: (one["Strategy"], []) for one in found
    }
    for lot in ec2.describe_instances()["Reservations"]:
        for machine in lot["Instances"]:
            group = machine["Placement"].get("GroupName")
            if group and machine["State"]["Name"] == "running":
                made[group][1].append(machine["InstanceType"])
    return made


def until(what: Callable[[], object], within_s: float = _WITHIN_S) -> Any:
    """Wait until something is true, and return it."""
    deadline = time.monotonic() + within_s
    while not (found := what()):
        assert time.monotonic() < deadline, "it did not come true in time"
        time.sleep(0.1)
    return found


@dataclass
class Tenant:
    """Somebody who rents machines: a key, a host key that the machines get, a security group."""

    emulator: Emulator
    caller: str
    folder: Path
    ec2: Client = field(init=False)
    group: str = field(init=False)
    image: str = field(init=False)

    def __post_init__(self) -> None:
        """Make the keys and the group."""
        self.ec2 = client(self.emulator)
        for name in ("user", "host"):
            path = str(self.folder / name)
            subprocess.run(("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path), check=True)
        self.ec2.import_key_pair(
            KeyName="k", PublicKeyMaterial=(self.folder / "user.pub").read_bytes()
        )
        made = self.ec2.create_security_group(GroupName="g", Description="for tests")
        self.group = made["GroupId"]
        self.allow(22, f"{self.caller}/32")
        found = client(self.emulator, "ssm").get_parameter(Name=UBUNTU)
        self.image = found["Parameter"]["Value"]

    def allow(self, port: int, cidr: str) -> None:
        """Open a port to somebody."""
        self.ec2.authorize_security_group_ingress(
            GroupId=self.group, IpPermissions=[_permission(port, cidr)]
        )

    def refuse(self, port: int, cidr: str) -> None:
        """Close a port to somebody."""
        self.ec2.revoke_security_group_ingress(
            GroupId=self.group, IpPermissions=[_permission(port, cidr)]
        )

    def user_data(self, **words: Any) -> str:
        """Return user data that brings the host key along."""
        host = {
            "ed25519_private": (self.folder / "host").read_text(),
            "ed25519_public": (self.folder / "host.pub").read_text(),
        }
        return "#cloud-config\n" + json.dumps(
            {"ssh_deletekeys": True, "ssh_keys": host, "ssh_pwauth": False, **words}
        )

    def launch(self, count: int = 1, *, data: dict[str, Any] | None = None, **words: Any) -> Any:
        """Launch machines, and return their ids."""
        asked = {
            "ImageId": self.image,
            "InstanceType": "m5.large",
            "KeyName": "k",
            "SecurityGroupIds": [self.group],
            "UserData": self.user_data(**(data or {})),
            "MetadataOptions": {"HttpTokens": "required"},
        }
        made = self.ec2.run_instances(**{**asked, "MinCount": count, "MaxCount": count, **words})
        return [item["InstanceId"] for item in made["Instances"]]

    def facts(self, instance_id: str) -> dict[str, Any]:
        """Return what the API says of a machine."""
        found = self.ec2.describe_instances(InstanceIds=[instance_id])
        return dict(found["Reservations"][0]["Instances"][0])

    def state(self, instance_id: str) -> str:
        """Return the state of a machine, as the API names it."""
        return str(self.facts(instance_id)["State"]["Name"])

    def ssh(
        self, instance_id: str, *words: str, host_key: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a command on a machine, whose host key must be the one that it was given."""
        address = self.facts(instance_id).get("PublicIpAddress", "")
        known = self.folder / f"known-{instance_id}"
        known.write_text(f"{address} {host_key or (self.folder / 'host.pub').read_text()}\n")
        return subprocess.run(
            ("ssh", "-i", str(self.folder / "user"), "-F", "none", "-o", "BatchMode=yes",
             "-o", "StrictHostKeyChecking=yes", "-o", f"UserKnownHostsFile={known}",
             "-o", "IdentitiesOnly=yes", "-o", "ConnectTimeout=2", f"ubuntu@{address}", *words),
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip

    def run(self, instance_id: str, command: str) -> str:
        """Run a command of the shell on a machine, which must succeed; return what it prints."""
        done = self.ssh(instance_id, command)
        assert done.returncode == 0, done.stderr or done.stdout
        return done.stdout.strip()

    def wait(self, ids: Sequence[str]) -> None:
        """Wait until cloud-init is done on machines."""
        for one in ids:
            until(partial(self._is_done, one))

    def _is_done(self, instance_id: str) -> bool:
        return self.ssh(instance_id, "cloud-init status --wait").returncode == 0

    def console(self, instance_id: str) -> str:
        """Return a machine's console."""
        return str(self.ec2.get_console_output(InstanceId=instance_id)["Output"])


def _permission(port: int, cidr: str) -> dict[str, Any]:
    return {
        "IpProtocol": "tcp",
        "FromPort": port,
        "ToPort": port,
        "IpRanges": [{"CidrIp": cidr}],
    }
