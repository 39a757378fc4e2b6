"""The crew of a notebook: ranks here and on other hosts; strangers are turned away."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from paceline import crew
from paceline.crew import Member, RanksFailed, plan_ranks

SECRET = "s3cret"
MASTER = Member("a", "10.0.0.1", "py", cores=4, procs=2, interface="eth0")
OTHER = Member("b", "10.0.0.2", "py", cores=2, procs=1, port=7000, interface="ens5")


def test_every_rank_knows_its_place() -> None:
    """Ranks are numbered host by host, threads share the cores, the master is the first host."""
    ranks = plan_ranks([MASTER, OTHER], ("-m", "x"), None, {"A": "b"}, 4000)
    places = [(rank.env["RANK"], rank.env["LOCAL_RANK"], rank.env["NODE_RANK"]) for rank in ranks]
    assert places == [("0", "0", "0"), ("1", "1", "0"), ("2", "0", "1")]
    assert [rank.env["OMP_NUM_THREADS"] for rank in ranks] == ["2", "2", "2"]
    assert [rank.env["GLOO_SOCKET_IFNAME"] for rank in ranks] == ["eth0", "eth0", "ens5"]
    assert {rank.env["MASTER_ADDR"] for rank in ranks} == {"10.0.0.1"}
    assert {rank.env["WORLD_SIZE"] for rank in ranks} == {"3"}
    assert ranks[0].argv == ("py", "-m", "x")
    assert ranks[0].env["A"] == "b"


def test_a_host_alone_stays_on_its_loopback() -> None:
    """Nothing goes over the network where there is no other host."""
    (rank,) = plan_ranks([MASTER], ("x.py",), 1, {}, 4000)
    assert (rank.env["MASTER_ADDR"], rank.env["GLOO_SOCKET_IFNAME"]) == ("127.0.0.1", "lo")


def listens(port: int) -> bool:
    """Whether somebody answers at a port of our own."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def pair(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return the folder of a notebook with a crew of two, the second in another process."""
    there = tmp_path / "there"
    here = tmp_path / "here"
    for folder in (there, here):
        folder.mkdir()
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    monkeypatch.chdir(here)
    monkeypatch.setenv(crew.SECRET_VARIABLE, SECRET)
    hosts = [
        {"host": "a", "address": "127.0.0.1", "python": sys.executable, "cores": 1, "procs": 1},
        {"host": "b", "address": "127.0.0.1", "python": sys.executable, "cores": 1, "procs": 1,
         "port": port},
    ]  # fmt: skip
    monkeypatch.setenv(crew.CREW_VARIABLE, json.dumps(hosts))
    argv = (sys.executable, "-m", "paceline.crew", "serve", str(port))
    with subprocess.Popen(argv, env={**os.environ, "PACELINE_OUT": str(there)}) as serving:
        deadline = time.monotonic() + 30
        while not listens(port):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        yield here
        serving.terminate()


SCRIPT = """\
import os, sys
print(os.path.basename(os.getcwd()), os.environ["RANK"], *sys.argv[1:])
sys.exit(int(os.environ["RANK"]) if "fail" in sys.argv else 0)
"""


def test_a_script_runs_as_every_rank(pair: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is sent to the other host, and what all ranks say comes here with their numbers."""
    (pair / "x.py").write_text(SCRIPT)
    crew.run("x.py", "word")
    said = sorted(capsys.readouterr().out.splitlines())
    assert said == ["[0] here 0 word", "[1] there 1 word"]


def test_a_rank_that_fails_is_named(pair: Path) -> None:
    """The last words of the rank that failed are the error, wherever it ran."""
    (pair / "x.py").write_text(SCRIPT)
    with pytest.raises(RanksFailed, match="rank 1 ended with exit code 1\nthere 1 fail"):
        crew.run("x.py", "fail")


def test_one_failure_ends_all(pair: Path) -> None:
    """A rank that would go on for long ends with the one that fails."""
    (pair / "x.py").write_text(
        "import os, time\n"
        "if os.environ['RANK'] == '0':\n"
        "    while not os.path.exists('../there/pid'): time.sleep(0.02)\n"
        "    raise SystemExit(3)\n"
        "open('draft', 'w').write(str(os.getpid()))\n"
        "os.rename('draft', 'pid')\ntime.sleep(600)\n"
    )
    with pytest.raises(RanksFailed, match="rank 0 ended with exit code 3"):
        crew.run("x.py")
    pid = (pair.parent / "there" / "pid").read_text()
    deadline = time.monotonic() + 30
    while Path("/proc", pid).exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_strangers_are_turned_away(pair: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the secret, nothing is run on another host."""
    (pair / "x.py").write_text(SCRIPT)
    monkeypatch.setenv(crew.SECRET_VARIABLE, "guessed")
    with pytest.raises(RanksFailed, match="did not take the call"):
        crew.run("x.py")
    assert not (pair.parent / "there" / "x.py").exists()


def test_no_crew_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Outside a notebook the message says what is missing."""
    monkeypatch.delenv(crew.CREW_VARIABLE, raising=False)
    with pytest.raises(RuntimeError, match="paceline notebook"):
        crew.members()
