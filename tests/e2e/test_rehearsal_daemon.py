"""`paceline rehearsal`: up, disturbed, and gone without a trace, also after kill -9."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from paceline.rehearsal.daemon.card import Card, read_card
from paceline.rehearsal.daemon.folder import Folder
from paceline.rehearsal.daemon.lifecycle import start, stop
from paceline.rehearsal.machines import grouping
from paceline.rehearsal.machines.ground import Ground
from paceline.rehearsal.machines.images import ImageShelf
from paceline.rehearsal.machines.journal import Journal
from paceline.rehearsal.machines.keeper import HostKeeper
from paceline.rehearsal.machines.places import Places
from paceline.rehearsal.machines.sweeping import Check, checks
from paceline.supervisor import procfs
from tests.rehearsing import UBUNTU, Client, client, skip_unless_possible, until

pytestmark = pytest.mark.e2e
MANUAL = Path(__file__).resolve().parents[2] / "docs/rehearsal.md"


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
        *(str(path) for path in Path("/sys/class/net").glob(f"plr*-{letters}")),
        *(line for line in mounts if str(home) in line),
        *(str(path) for path in home.rglob("*")),
    ]


def card_of(home: Path) -> Card:
    """Return where the rehearsal of a state folder answers."""
    card = read_card(home / "rehearsal/rehearsal.json")
    assert card is not None
    return card


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
    letters = card.letters
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


def test_started_and_stopped_again_and_again(home: Path) -> None:
    """Ten times nothing is left: with a machine, without, after kill -9; none has old letters."""
    folder = Folder(home / "rehearsal")
    seen = set()
    for turn in range(10):
        card, new = start(folder, "1gbit")
        assert new
        if turn == 0:
            launched(card, 1)
        if turn in (1, 5, 8):
            os.kill(card.pid, signal.SIGKILL)
        assert stop(folder)
        assert leaves_of(card.letters, home) == []
        seen.add(card.letters)
    assert len(seen) == 10


def test_the_manual_s_lines_work_as_typed(home: Path) -> None:
    """Under sudo, whose search path has no venv, the first and the last line find Paceline."""
    lines = [line for line in MANUAL.read_text().splitlines() if line.startswith("sudo -E ")]
    programs = Path(sys.executable).parent
    if programs.name != "bin" or not (programs / "paceline").exists():
        pytest.fail("the tests run in an environment in which paceline is installed")
    env = {**os.environ, "PACELINE_HOME": str(home), "PATH": f"{programs}:{os.environ['PATH']}"}

    def type_it(line: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-c", line], env=env, cwd=home,
            capture_output=True, text=True, timeout=180, check=False,
        )  # fmt: skip

    assert str(programs) not in type_it("sudo -E printenv PATH").stdout.split(":")
    for line in (lines[0], lines[-1]):
        done = type_it(line)
        assert done.returncode == 0, done.stderr
    assert "none left" in done.stdout


@pytest.mark.parametrize("sign", ["lock", "base", "control.sock"])
def test_a_start_killed_half_way(home: Path, sign: str) -> None:
    """Whoever starts is killed, the daemon goes on: `stop` waits for it, and takes all away."""
    folder = home / "rehearsal"
    killed_when(home, "start", (folder / sign).exists)
    done = paceline(home, "rehearsal", "stop")
    assert done.returncode == 0, done.stderr
    assert leaves_of("", home) == []
    assert daemons_of(folder) == []


@pytest.mark.parametrize("point", ["told", "amid", "late"])
def test_a_stop_killed_half_way(home: Path, point: str) -> None:
    """Whoever stops is killed: the next `start` or `stop` waits for the end, and leaves nothing."""
    folder = Folder(home / "rehearsal")
    first, _ = start(folder)
    launched(first, 1)

    def reached() -> bool:
        if point == "amid":
            return '"gone"' in folder.journal.read_text()
        card = read_card(folder.card)
        return card is None if point == "late" else card is not None and card.ending

    killed_when(home, "stop", reached)
    if point == "told":
        assert start(folder)[1]
    else:
        stop(folder)
    assert not first.alive
    assert leaves_of(first.letters, home / "none") == []
    stop(folder)
    assert leaves_of("", home) == []


def killed_when(home: Path, verb: str, reached: Callable[[], bool]) -> None:
    """Say a verb, and end it without a word as soon as something is true."""
    with subprocess.Popen(
        (sys.executable, "-m", "paceline", "rehearsal", verb),
        env={**os.environ, "PACELINE_HOME": str(home)},
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    ) as caller:  # fmt: skip
        while not reached():
            assert caller.poll() is None
            time.sleep(0.002)
        caller.kill()


def daemons_of(folder: Path) -> list[int]:
    """Return the daemons of a state folder that are at work."""
    words = f"paceline.rehearsal.daemon\0{folder}\0".encode()
    found = []
    for entry in procfs.all_entries():
        with contextlib.suppress(OSError):
            if entry.alive and words in Path(f"/proc/{entry.pid}/cmdline").read_bytes():
                found.append(entry.pid)
    return found


def test_many_at_once_disturb_none(tmp_path: Path) -> None:
    """Rehearsals that begin and end side by side share no address, and each leaves nothing.

    What one proves to be gone is its own: a neighbour's things are never taken for it.
    """
    skip_unless_possible()
    together: set[str] = set()

    def live(folder: Path) -> list[Check]:
        folder.mkdir()
        places = Places(folder, secrets.token_hex(3))
        journal = Journal(places.journal)
        keeper = HostKeeper(Ground(places, journal, ImageShelf(places)))
        address = keeper.caller
        assert address not in together
        together.add(address)
        time.sleep(0.05)
        together.remove(address)
        keeper.close()
        return [check for check in checks(journal.all()) if check.left]

    with ThreadPoolExecutor(5) as pool:
        found = list(pool.map(live, [tmp_path / str(turn) for turn in range(10)]))
    assert found == [[]] * 10


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
    space = f"plr-{card.letters}-1"
    done = subprocess.run(
        ("ip", "netns", "exec", space, *words), capture_output=True, text=True, check=True
    )
    return done.stdout


def _machine(home: Path) -> dict[str, Any]:
    """Return what the status says of the only machine."""
    (one,) = json.loads(paceline(home, "rehearsal", "status", "--json").stdout)["machines"]
    return dict(one)
