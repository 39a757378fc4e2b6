"""`paceline rehearsal`: up, disturbed, and gone without a trace, also after kill -9."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from paceline.rehearsal.daemon.card import Card, read_card
from paceline.rehearsal.daemon.folder import Folder
from paceline.rehearsal.daemon.lifecycle import start, stop
from paceline.rehearsal.machines import grouping
from tests.rehearsing import UBUNTU, Client, client, skip_unless_possible, until

pytestmark = pytest.mark.e2e


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """Return a state folder; what is up in it at the end is stopped."""
    skip_unless_possible()
    yield tmp_path
    paceline(tmp_path, "rehearsal", "stop")


def paceline(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Say a verb with a state folder of its own."""
    return subprocess.run(
        (sys.executable, "-m", "paceline", *words),
        env={**os.environ, "PACELINE_HOME": str(home)},
        capture_output=True, text=True, timeout=180, check=False,
    )  # fmt: skip


def leaves_of(letters: str, home: Path) -> list[str]:
    """Return what a rehearsal of these letters has on this machine now."""
    groups = [
        path for tree in grouping.hierarchies() for path in tree.folder.glob(f"paceline-{letters}")
    ]
    mounts = Path("/proc/self/mountinfo").read_text().splitlines()
    return [
        *(str(path) for path in Path("/run/netns").glob(f"plr-{letters}-*")),
        *(str(path) for path in groups),
        *(str(path) for path in Path("/run/paceline-rehearsal").glob(f"{letters}.sock")),
        *(line for line in mounts if str(home) in line),
        *(str(path) for path in home.rglob("*")),
    ]


def card_of(home: Path) -> Card:
    """Return where the rehearsal of a state folder answers."""
    card = read_card(home / "rehearsal/rehearsal.json")
    assert card is not None
    return card


def letters_of(card: Card) -> str:
    """Return the letters that the names of a rehearsal bear."""
    return Path(card.control).stem


def launched(card: Card, count: int) -> list[str]:
    """Launch machines, and return their ids when their consoles say that they are up."""
    ec2 = client(card)
    ssm = client(card, "ssm")
    image = ssm.get_parameter(Name=UBUNTU)["Parameter"]["Value"]
    made = ec2.run_instances(ImageId=image, InstanceType="t3.small", MinCount=count, MaxCount=count)
    ids = [item["InstanceId"] for item in made["Instances"]]
    for one in ids:
        until(partial(_is_up, ec2, one))
    return ids


def _is_up(ec2: Client, instance_id: str) -> bool:
    return "cloud-init finished" in ec2.get_console_output(InstanceId=instance_id)["Output"]


def test_after_kill_nine_nothing_is_left(home: Path) -> None:
    """A daemon that is killed leaves machines at work; `stop` ends them and shows the proof."""
    assert paceline(home, "rehearsal", "start").returncode == 0
    card = card_of(home)
    launched(card, 2)
    letters = letters_of(card)
    assert leaves_of(letters, home)
    link = json.loads((home / "rehearsal/journal.jsonl").read_text().splitlines()[0])
    assert link["what"] == "made"
    os.kill(card.pid, signal.SIGKILL)
    until(lambda: not card.alive)
    groups = [path for path in leaves_of(letters, home) if "/cgroup/" in path]
    assert any(grouping.processes_in(Path(path)) for path in groups)
    done = paceline(home, "rehearsal", "stop")
    assert done.returncode == 0, done.stderr
    assert "namespaces: 3 made, none left" in done.stdout
    assert leaves_of(letters, home) == []
    assert not any(grouping.processes_in(Path(path)) for path in groups)


def test_ten_starts_leave_nothing(home: Path) -> None:
    """Started and stopped ten times, with machines now and then, nothing piles up."""
    folder = Folder(home / "rehearsal")
    seen = set()
    for turn in range(10):
        card, new = start(folder, "1gbit")
        assert new
        if turn in {0, 9}:
            launched(card, 1)
        assert stop(folder)
        assert leaves_of(letters_of(card), home) == []
        seen.add(letters_of(card))
    assert len(seen) == 10


def test_faults_happen_and_are_undone(home: Path) -> None:
    """Each fault is seen by whom it concerns, listed while it is in force, and taken back."""
    assert paceline(home, "rehearsal", "start").returncode == 0
    card = card_of(home)
    (one,) = launched(card, 1)
    ec2 = client(card)
    for words in (
        ("no-capacity", "us-east-1a"),
        ("cut", one),
        ("slow-link", one, "50mbit"),
        ("throttle", "1.0"),
    ):
        assert paceline(home, "rehearsal", "fault", *words).returncode == 0, words
    assert "rate 50Mbit" in _inside(card, "tc", "qdisc", "show", "dev", "eth0")
    assert "NO-CARRIER" in _inside(card, "ip", "link", "show", "eth0")
    assert "in force: throttle 1.0" in paceline(home, "rehearsal", "status").stdout
    with pytest.raises(ClientError, match="RequestLimitExceeded"):
        ec2.describe_instances()
    for undo in (["throttle", "1.0"], ["cut", one], ["slow-link", one], ["no-capacity"]):
        done = paceline(home, "rehearsal", "fault", *undo, "--undo")
        assert done.returncode == 0, done.stderr
    assert "rate 500Mbit" in _inside(card, "tc", "qdisc", "show", "dev", "eth0")
    assert "state UP" in _inside(card, "ip", "link", "show", "eth0")
    assert ec2.describe_instances()["Reservations"]
    assert paceline(home, "rehearsal", "fault", "kill", one).returncode == 0
    status = json.loads(paceline(home, "rehearsal", "status", "--json").stdout)
    assert status["machines"][0]["state"] == "running"
    assert not status["machines"][0]["on"]
    assert status["faults"] == [f"kill {one}"]
    assert paceline(home, "rehearsal", "fault", "kill", one, "--undo").returncode == 0
    until(lambda: _machine(home)["on"])
    wrong = paceline(home, "rehearsal", "fault", "spot-interruption", one)
    assert (wrong.returncode, "spot market" in wrong.stderr) == (4, True)
    assert paceline(home, "rehearsal", "fault", "cut", "nobody").returncode == 8


def _inside(card: Card, *words: str) -> str:
    """Return what a program says in the network of the first machine."""
    space = f"plr-{letters_of(card)}-1"
    done = subprocess.run(
        ("ip", "netns", "exec", space, *words), capture_output=True, text=True, check=True
    )
    return done.stdout


def _machine(home: Path) -> dict[str, Any]:
    """Return what the status says of the only machine."""
    (one,) = json.loads(paceline(home, "rehearsal", "status", "--json").stdout)["machines"]
    return dict(one)
