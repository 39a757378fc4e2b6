"""Instances of a rehearsed EC2 are hosts: they boot, serve, obey, and leave nothing."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from paceline.rehearsal.machines.journal import Journal
from paceline.rehearsal.machines.rehearsal import Rehearsal
from tests.rehearsing import Tenant, skip_unless_possible, until

pytestmark = pytest.mark.e2e
METADATA = "http://169.254.169.254/latest"
_EXPIRY = {
    "path": "/var/lib/cloud/scripts/per-boot/paceline-expiry",
    "permissions": "0755",
    "content": "#!/bin/sh\necho boot >>/root/boots\n",
}


@pytest.fixture(scope="module")
def rehearsal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rehearsal]:
    """Return an EC2 on this machine."""
    skip_unless_possible()
    with Rehearsal(tmp_path_factory.mktemp("rehearsal"), bandwidth_mbit=1000) as made:
        yield made
    assert Journal(made.places.journal).held() == ()


@pytest.fixture(scope="module")
def tenant(rehearsal: Rehearsal, tmp_path_factory: pytest.TempPathFactory) -> Tenant:
    """Return somebody with a key and a security group."""
    caller = rehearsal.keeper.caller
    return Tenant(rehearsal.emulator, caller, tmp_path_factory.mktemp("tenant"))


@pytest.fixture(scope="module")
def pair(tenant: Tenant) -> tuple[str, str]:
    """Return two machines that have booted."""
    first, second = tenant.launch(
        2,
        data={
            "write_files": [_EXPIRY],
            "bootcmd": ["echo early > /root/early"],
            "runcmd": [["touch", "/root/a file"], "cp /root/early /root/late"],
        },
    )
    tenant.wait((first, second))
    return first, second


def test_a_machine_is_what_its_user_data_says(tenant: Tenant, pair: tuple[str, str]) -> None:
    """Keys, user, rights, files and commands are as the launch wanted them."""
    first = pair[0]
    assert tenant.run(first, "id -un; sudo id -un").split() == ["ubuntu", "root"]
    assert tenant.run(first, "sudo ls /root").splitlines() == ["a file", "boots", "early", "late"]
    address = tenant.facts(first)["PrivateIpAddress"]
    assert tenant.run(first, "hostname") == f"ip-{address.replace('.', '-')}"
    assert "cloud-init finished" in tenant.console(first)
    second = tenant.facts(pair[1])["PrivateIpAddress"]
    name = f"ip-{second.replace('.', '-')}.ec2.internal"
    assert tenant.run(first, f"getent hosts {second}").split()[1] == name
    assert tenant.run(first, f"getent hosts {name}").split()[0] == second


def test_a_wrong_host_key_is_noticed(tenant: Tenant, pair: tuple[str, str]) -> None:
    """Whoever expects another host key does not get in."""
    other = (tenant.folder / "user.pub").read_text()
    done = tenant.ssh(pair[0], "true", host_key=other)
    assert done.returncode == 255
    assert "Host key verification failed" in done.stderr


def test_a_machine_does_not_see_what_is_its_hosts(tenant: Tenant, pair: tuple[str, str]) -> None:
    """Homes, temporary files and processes of this machine are hidden, and so is the neighbour."""
    first, second = pair
    assert tenant.run(first, "ls /home") == "ubuntu"
    assert str(Path.cwd()) not in tenant.run(first, "ls -d /tmp/* /home/* /srv/* 2>&1 || true")
    assert len(tenant.run(first, "ps ax -o pid=").split()) < 20
    tenant.run(first, "echo mine | sudo tee /usr/local/mine /tmp/mine")
    assert tenant.ssh(second, "test -e /usr/local/mine || test -e /tmp/mine").returncode == 1
    assert not Path("/usr/local/mine").exists()


@pytest.mark.torch
def test_a_machine_has_torch_and_its_types_size(rehearsal: Rehearsal, tenant: Tenant) -> None:
    """Python there finds torch, and a host's facts are those of its instance type."""
    (one,) = tenant.launch(InstanceType="m5.2xlarge")
    tenant.wait([one])
    script = "import sys, json, torch; print(json.dumps([torch.__version__, sys.executable]))"
    version, executable = json.loads(tenant.run(one, f"python3 -c '{script}'"))
    assert version
    assert executable == "/opt/pytorch/bin/python3"
    assert json.loads(tenant.run(one, "cat /run/paceline/machine.json"))["cores"] == 8
    limits = "cat /sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/memory.max"
    if rehearsal.keeper.body(one).unlimited == ():
        assert tenant.ssh(one, limits).stdout.split() == [str(32 << 30)]
    tenant.ec2.terminate_instances(InstanceIds=[one])


def test_metadata_needs_a_token(tenant: Tenant, pair: tuple[str, str]) -> None:
    """Without a token nothing is told; with one, each machine learns of itself."""
    ask = f"curl -s -o /dev/null -w '%{{http_code}}' {METADATA}/meta-data/instance-id"
    assert tenant.run(pair[0], ask) == "401"
    for one in pair:
        assert tenant.run(one, _ask("instance-id")) == one
        assert tenant.run(one, _ask("public-ipv4")) == tenant.facts(one)["PublicIpAddress"]
    assert "404" in tenant.run(pair[0], _ask("spot/instance-action", "-w '%{http_code}'"))


def test_metadata_goes_no_further_than_its_machine(tenant: Tenant, pair: tuple[str, str]) -> None:
    """What stands behind a machine, like a container, gets a token if one more hop is allowed."""
    one = pair[1]
    rule = "add rule ip box out oifname eth0 masquerade"
    chain = "add chain ip box out { type nat hook postrouting priority 100; }"
    for command in (
        "ip netns add box", "ip link add v0 type veth peer name v1 netns box",
        "ip addr add 10.9.0.1/24 dev v0", "ip link set v0 up",
        "ip -n box addr add 10.9.0.2/24 dev v1", "ip -n box link set v1 up",
        "ip -n box route add default via 10.9.0.1", "sysctl -qw net.ipv4.ip_forward=1",
        f"nft 'add table ip box; {chain}; {rule}'",
    ):  # fmt: skip
        tenant.run(one, f"sudo {command}")
    header = "-H 'X-aws-ec2-metadata-token-ttl-seconds: 60'"
    ask = f"sudo ip netns exec box curl -m 2 -so /dev/null -w '%{{http_code}}' -X PUT {header}"
    change = partial(tenant.ec2.modify_instance_metadata_options, InstanceId=one)
    assert tenant.ssh(one, f"{ask} {METADATA}/api/token").returncode == 28
    change(HttpPutResponseHopLimit=2)
    assert tenant.run(one, f"{ask} {METADATA}/api/token") == "200"
    change(HttpEndpoint="disabled")
    assert tenant.run(one, f"{ask} {METADATA}/api/token") == "403"
    change(HttpEndpoint="enabled", HttpPutResponseHopLimit=1)
    tenant.run(one, "sudo ip netns del box")


def test_security_groups_have_effect(tenant: Tenant, pair: tuple[str, str]) -> None:
    """A port is closed until a rule opens it, also between members, and closed again after."""
    first, second = pair
    address = tenant.facts(second)["PrivateIpAddress"]
    knock = f"timeout 1 bash -c 'echo > /dev/tcp/{address}/22'"
    assert tenant.ssh(first, knock).returncode == 124
    rule = [{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": tenant.group}]}]
    tenant.ec2.authorize_security_group_ingress(GroupId=tenant.group, IpPermissions=rule)
    assert tenant.ssh(first, knock).returncode == 0
    tenant.ec2.revoke_security_group_ingress(GroupId=tenant.group, IpPermissions=rule)
    assert tenant.ssh(first, knock).returncode == 124
    tenant.refuse(22, f"{tenant.caller}/32")
    assert "timed out" in tenant.ssh(first, "true").stderr
    tenant.allow(22, f"{tenant.caller}/32")
    assert tenant.ssh(first, "true").returncode == 0


def test_the_disk_survives_a_stop(tenant: Tenant, pair: tuple[str, str]) -> None:
    """After stop and start the disk is the same, the first boot is not done again, the rest is."""
    one = pair[1]
    tenant.run(one, "echo kept | sudo tee /opt/kept")
    before = tenant.facts(one)["PublicIpAddress"]
    tenant.ec2.stop_instances(InstanceIds=[one])
    until(lambda: tenant.state(one) == "stopped")
    tenant.ec2.start_instances(InstanceIds=[one])
    tenant.wait([one])
    assert tenant.facts(one)["PublicIpAddress"] != before
    assert tenant.run(one, "cat /opt/kept") == "kept"
    assert tenant.run(one, "sudo cat /root/boots").split() == ["boot", "boot"]


def test_an_image_keeps_what_was_installed(tenant: Tenant, pair: tuple[str, str]) -> None:
    """A machine from a baked image has the files of the first, and a first boot of its own."""
    source = pair[0]
    tenant.run(source, "echo 'echo baked' | sudo tee /usr/bin/tool; sudo chmod +x /usr/bin/tool")
    tenant.run(source, "sudo rm /usr/bin/sha1sum")
    has_docker = shutil.which("dockerd", path="/usr/sbin:/usr/bin") is not None
    if has_docker:
        tenant.run(source, "cd / && sudo tar -c etc/hostname | sudo docker import - files:1")
    image = tenant.ec2.create_image(InstanceId=source, Name="baked")["ImageId"]
    (one,) = tenant.launch(ImageId=image, data={"runcmd": ["echo again > /root/again"]})
    tenant.wait([one, source])
    assert tenant.run(one, "tool") == "baked"
    assert tenant.ssh(one, "test -e /usr/bin/sha1sum").returncode == 1
    assert tenant.run(one, "sudo cat /root/again") == "again"
    if has_docker:
        listed = tenant.run(one, "sudo docker images --format '{{.Repository}}:{{.Tag}}'")
        assert listed == "files:1"
    assert tenant.run(one, _ask("instance-id")) == one
    tenant.ec2.terminate_instances(InstanceIds=[one])
    tenant.ec2.deregister_image(ImageId=image)


def test_a_shutdown_from_inside_is_seen_by_the_api(tenant: Tenant) -> None:
    """A timed shutdown stops one machine and terminates another, as each was launched."""
    timer = ("systemd-run", "--unit=expiry", "--on-active=1s", "--timer-property=AccuracySec=1s")
    runcmd = [[*timer, "/sbin/shutdown", "-P", "now"]]
    (stops,) = tenant.launch(data={"runcmd": runcmd})
    (ends,) = tenant.launch(data={"runcmd": runcmd}, InstanceInitiatedShutdownBehavior="terminate")
    until(lambda: tenant.state(stops) == "stopped")
    until(lambda: tenant.state(ends) == "terminated")
    assert tenant.facts(stops)["StateReason"]["Code"] == "Client.InstanceInitiatedShutdown"
    tenant.ec2.terminate_instances(InstanceIds=[stops])


def test_a_spot_instance_is_warned(rehearsal: Rehearsal, tenant: Tenant) -> None:
    """The notice stands in the metadata before the instance is taken back."""
    (one,) = tenant.launch(InstanceMarketOptions={"MarketType": "spot"})
    tenant.wait([one])
    rehearsal.emulator.interrupt(one, notice_s=5.0)
    notice = json.loads(tenant.run(one, _ask("spot/instance-action")))
    assert notice["action"] == "terminate"
    until(lambda: tenant.state(one) == "terminated")


def _ask(path: str, more: str = "") -> str:
    token = f"$(curl -sX PUT -H 'X-aws-ec2-metadata-token-ttl-seconds: 60' {METADATA}/api/token)"
    return f'curl -s {more} -H "X-aws-ec2-metadata-token: {token}" {METADATA}/meta-data/{path}'
