"""The promises about security, each held by a test."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import stat
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from paceline.app.provision import bring_up, plan_up
from paceline.app.renting import Desk
from paceline.cli import show
from paceline.cli.render_cloud import render_cloud
from paceline.model.command import Secret
from paceline.model.host import Cluster
from paceline.planning.ec2.hostkeys import make_new_key, public_half, take_new_key
from paceline.ports import KeyPair
from paceline.providers.ec2 import Ec2Cloud
from paceline.rehearsal.emulator import Emulator
from tests.fakes.rented import KEY, SshWorld, desk_at, quick_key, wish


def up(desk: Desk, nodes: int = 2) -> Cluster:
    """Bring a cluster up."""
    return asyncio.run(bring_up(desk, wish(nodes)))


def only(cloud: Ec2Cloud, action: str, key: str) -> Mapping[str, Any]:
    """Return the one thing of ours that the API describes."""
    from paceline.model.ec2 import Request
    from paceline.planning.ec2 import questions

    asked = {"Filters": questions.filters(questions.of_cluster(KEY))}
    (found,) = asyncio.run(cloud.call(Request(action, asked)))[key]
    answer: Mapping[str, Any] = found
    return answer


def test_only_our_own_address_reaches_ssh(cloud: Ec2Cloud, desk: Desk) -> None:
    """The group lets in port 22 from our /32, everything from itself, and nothing else."""
    up(desk)
    group = only(cloud, "DescribeSecurityGroups", "SecurityGroups")
    ssh, inside = group["IpPermissions"]
    assert (ssh["IpProtocol"], ssh["FromPort"], ssh["ToPort"]) == ("tcp", 22, 22)
    assert [entry["CidrIp"] for entry in ssh["IpRanges"]] == ["203.0.113.7/32"]
    assert (ssh["UserIdGroupPairs"], ssh["Ipv6Ranges"]) == ([], [])
    assert inside["IpProtocol"] == "-1"
    assert [pair["GroupId"] for pair in inside["UserIdGroupPairs"]] == [group["GroupId"]]
    assert (inside["IpRanges"], inside["Ipv6Ranges"]) == ([], [])


def test_an_address_of_yesterday_is_closed(cloud: Ec2Cloud, desk: Desk) -> None:
    """When we come from elsewhere, `up` lets us in and the old address out."""
    up(desk)

    async def elsewhere() -> str:
        return "198.51.100.9"

    up(replace(desk, find_address=elsewhere))
    group = only(cloud, "DescribeSecurityGroups", "SecurityGroups")
    networks = [item["CidrIp"] for rule in group["IpPermissions"] for item in rule["IpRanges"]]
    assert networks == ["198.51.100.9/32"]


def test_hosts_ask_for_tokens_and_end_when_switched_off(emulator: Emulator, desk: Desk) -> None:
    """Metadata needs a token and one hop; no host keeps costing after its own shutdown."""
    up(desk)
    for item in emulator.instances():
        assert item.metadata["HttpTokens"] == "required"
        assert item.metadata["HttpPutResponseHopLimit"] == 1
        assert item.behaviour == "terminate"


def test_disks_are_encrypted_and_go_with_their_hosts(emulator: Emulator, desk: Desk) -> None:
    """Nothing that a job has written can be read from a disk that somebody else gets."""
    up(desk)
    volumes = emulator.regions[emulator.region].disks.values()
    assert volumes
    assert all(item.disk.encrypted and item.disk.goes_with_instance for item in volumes)


def test_no_cloud_credentials_on_hosts(emulator: Emulator, desk: Desk) -> None:
    """Hosts get no role and no key of the account, in no word of their launch."""
    up(desk)
    (launch,) = [call for call in emulator.calls.all() if call.action == "RunInstances"]
    words = {key.split(".")[0] for key in launch.parameters}
    assert "IamInstanceProfile" not in words
    told = base64.b64decode(launch.parameters["UserData"]).decode()
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        assert os.environ[name] not in told


def test_everything_bears_our_tags(emulator: Emulator, desk: Desk) -> None:
    """Cluster, owner, expiry and who manages it stand on every single thing from its birth."""
    up(desk)
    region = emulator.regions[emulator.region]
    mine = [key for key in region.tags if region.tags[key].get("paceline:owner") == KEY.owner]
    held = {name.partition("/")[2] for items in emulator.inventory().values() for name in items}
    assert set(mine) >= held
    assert all(call.action != "CreateTags" for call in emulator.calls.all())
    for one in mine:
        assert region.tags[one]["paceline:cluster"] == KEY.name
        assert region.tags[one]["paceline:managed-by"] == "paceline"
        assert region.tags[one]["paceline:expires"].endswith("Z")


def test_hosts_know_when_to_end(emulator: Emulator, desk: Desk) -> None:
    """The expiry in the user data is that of the tags and of the ledger."""
    up(desk)
    known = desk.ledger.cluster(KEY)
    assert known is not None
    for item in emulator.instances():
        text = base64.b64decode(item.user_data).decode()
        document = json.loads(text.removeprefix("#cloud-config\n"))
        assert f"expires_at={int(known.expires_at)}\n" in document["write_files"][0]["content"]
        assert document["write_files"][0]["permissions"] == "0755"


def test_no_secret_is_written_down_or_shown(
    cloud: Ec2Cloud, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Private keys are in no plan, no ledger and no word that is said; only in their own files."""
    secret = "THE-PRIVATE-HALF-OF-A-KEY"
    said: list[str] = []

    class Listener:
        def step(self, text: str) -> None:
            said.append(text)

        def progress(self, done: int, total: int, what: str) -> None:
            said.append(f"{done} {total} {what}")

    desk = desk_at(
        cloud, tmp_path, watcher=Listener(),
        make=lambda: KeyPair(Secret(secret), quick_key().public),
    )  # fmt: skip
    plan, _ = asyncio.run(plan_up(desk, wish(2)))
    cluster = up(desk)
    shown = [render_cloud(plan), json.dumps(show.plain(plan)), json.dumps(show.plain(cluster))]
    assert not any(secret in text for text in (*said, *shown, repr(plan), repr(desk.keyring)))
    written = {
        path.relative_to(tmp_path).as_posix(): path.read_bytes()
        for path in tmp_path.rglob("*")
        if path.is_file()
    }
    bearing = {name.rpartition("/")[2] for name, data in written.items() if secret.encode() in data}
    assert bearing == {"user", "host"}
    assert secret not in "".join(capsys.readouterr())


def test_files_are_ours_alone_and_nothing_goes_to_ssh(
    cloud: Ec2Cloud, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is kept can be read by its owner only, and the user's ~/.ssh stays as it is."""
    home = tmp_path / "user"
    (home / ".ssh").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    up(desk_at(cloud, tmp_path / "state"))
    assert list((home / ".ssh").iterdir()) == []
    kept = [path for path in (tmp_path / "state").rglob("*") if path.is_file()]
    assert [path for path in kept if stat.S_IMODE(path.stat().st_mode) & 0o077] == []


def test_every_host_gets_a_key_of_its_own(desk: Desk, world: SshWorld) -> None:
    """All hosts are met with the key of their user data; none shows it afterwards."""
    cluster = up(desk, 3)
    given = desk.keyring.pair(KEY, "host").public
    pinned = {host.ssh.host_key for host in cluster.hosts if host.ssh is not None}
    assert len(pinned) == 3
    assert given not in pinned
    first = dict(reversed(world.contacts))
    assert set(first.values()) == {given}
    assert set(world.shown.values()) == pinned
    assert all(pin.settled for pin in desk.keyring.pins(KEY).values())


def test_a_change_of_host_keys_survives_any_loss(desk: Desk, world: SshWorld) -> None:
    """A process that dies between the steps of a change finds the host again, by either key."""
    cluster = up(desk, 1)
    (host,) = cluster.hosts
    (instance_id,) = desk.keyring.pins(KEY)
    pin = desk.keyring.pins(KEY)[instance_id]
    before = desk.keyring.pair(KEY, "host").public
    # Written down as coming, and in use already.
    desk.keyring.write_pin(
        KEY, instance_id, replace(pin, now=before, coming=pin.now, settled=False)
    )
    assert up(desk, 1) == cluster
    # Written down as coming, and not in use yet.
    world.shown[host.address] = before
    world.made[host.address] = pin.now
    desk.keyring.write_pin(
        KEY, instance_id, replace(pin, now=before, coming=pin.now, settled=False)
    )
    assert up(desk, 1) == cluster


def test_the_scripts_of_a_change_are_good_shell() -> None:
    """They run as root on every host, so they must parse; what they say is read strictly."""
    import subprocess

    for command in (make_new_key(), take_new_key()):
        done = subprocess.run(["sh", "-n"], input=command.stdin, capture_output=True, check=False)
        assert (done.returncode, done.stderr) == (0, b"")
    assert public_half("noise\nssh-ed25519 AAAA comment\n") == "ssh-ed25519 AAAA"
    assert public_half("sudo: a password is required\n") is None
