"""Work on rented hosts as it is typed, on real machines behind the emulated EC2."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator

import pytest

from paceline.rehearsal.machines.rehearsal import Rehearsal
from tests.fakes.terminal import Terminal, wait_until
from tests.rehearsing import skip_unless_possible

pytestmark = pytest.mark.e2e

SPEC = """\
name: trial
cluster: {provider: ec2, instance_type: m5.large, nodes: 2}
job: {command: [sh, -c, "echo rank $RANK on $(hostname)"]}
bake: {commands: ["echo baked | sudo tee /opt/baked"]}
limits: {ttl: 1h}
"""


@pytest.fixture(scope="module")
def rehearsal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rehearsal]:
    """Return an EC2 on this machine."""
    skip_unless_possible()
    with Rehearsal(tmp_path_factory.mktemp("rehearsal"), bandwidth_mbit=1000) as made:
        yield made


@pytest.fixture
def desk(rehearsal: Rehearsal, terminal: Terminal) -> Iterator[Terminal]:
    """Return a terminal whose AWS is the rehearsal; nothing is rented before and after."""
    terminal.env |= rehearsal.emulator.environ
    terminal.env["PACELINE_MY_ADDRESS"] = str(rehearsal.keeper.caller)
    terminal.file("spec.yaml", SPEC)
    yield terminal
    held = rehearsal.emulator.inventory()
    assert {kind: items for kind, items in held.items() if items} == {}


def said(terminal: Terminal, *words: str) -> str:
    """Say a verb that must do well; return what it prints."""
    done = terminal.paceline(*words, timeout_s=300.0)
    assert done.returncode == 0, f"{words}: {done.stdout}\n{done.stderr}"
    return done.stdout


def test_train_rents_and_gives_back(desk: Terminal) -> None:
    """The ranks of both hosts are heard, and the results are here when the hosts are gone."""
    out = said(desk, "train", "spec.yaml")
    assert sorted(line.split()[1] for line in out.splitlines()) == ["0", "1"]
    assert len({line.split()[3] for line in out.splitlines()}) == 2
    (folder,) = (desk.folder / "paceline-results").iterdir()
    assert json.loads((folder / "run.json").read_text())["state"] == "succeeded"


def test_ctrl_c_gives_back_what_was_rented(desk: Terminal) -> None:
    """In the middle of a run: it is stopped, and the cluster goes."""
    words = ("train", "spec.yaml", "-s", 'job.command=[sh, -c, "echo up; sleep 900"]')
    with desk.start(*words) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=300)
    assert process.returncode == 130


def test_a_cluster_that_is_up_serves_again_and_again(desk: Terminal, rehearsal: Rehearsal) -> None:
    """Up, a command on all, a file to all, off and on at other addresses, a run; then down."""
    before = json.loads(said(desk, "up", "spec.yaml", "--json"))
    desk.file("word", "carried\n")
    said(desk, "cp", "word", "all:word")
    out = said(desk, "exec", "--cluster", "trial", "--", "sh", "-c", "cat ~/word; hostname")
    assert out.count("carried") == 2
    assert said(desk, "ssh", "1", "--", "cat", "word") == "carried\n"
    said(desk, "stop", "--cluster", "trial")
    assert {item.state for item in rehearsal.emulator.instances()} == {"stopped"}
    after = json.loads(said(desk, "start", "trial", "--json"))
    assert [host["peer_address"] for host in after["hosts"]] == [
        host["peer_address"] for host in before["hosts"]
    ]
    assert after["hosts"][0]["address"] != before["hosts"][0]["address"]
    assert said(desk, "exec", "--on", "0", "--", "cat", "word") == "carried\n"
    said(desk, "train", "spec.yaml")
    assert len(rehearsal.emulator.instances()) == 2
    said(desk, "down")


def test_a_baked_image_has_what_was_prepared(desk: Terminal, rehearsal: Rehearsal) -> None:
    """What the builder got is on a host of its image, which has neither its keys nor its expiry."""
    said(desk, "bake", "spec.yaml", "--name", "base")
    assert rehearsal.emulator.instances() == []
    (shown,) = json.loads(said(desk, "bake", "ls", "--json"))
    assert (shown["name"], shown["state"], shown["user"]) == ("base", "available", "ubuntu")
    said(desk, "up", "spec.yaml", "-s", "cluster.image=base", "-s", "cluster.nodes=1")
    look = "cat /opt/baked; wc -l < ~/.ssh/authorized_keys; ls /var/lib/cloud/scripts/per-boot"
    assert said(desk, "exec", "--", "sh", "-c", look).split() == ["baked", "1", "paceline-expiry"]
    said(desk, "down")
    said(desk, "bake", "rm", "base")


def test_hosts_that_nobody_needs_end_by_themselves(desk: Terminal, rehearsal: Rehearsal) -> None:
    """We never come back, and yet they go; what is left is taken down."""
    said(desk, "up", "spec.yaml", "-s", "cluster.idle=8s", "-s", "cluster.nodes=1")
    wait_until(lambda: rehearsal.emulator.instances() == [])
    said(desk, "down")
