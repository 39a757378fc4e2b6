"""Open MPI's daemons without ssh: only whoever knows the run's secret is obeyed, once."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from paceline.mpi import call, proof, rank_variables
from paceline.supervisor.ports import free_ports


@contextmanager
def serving(secret: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Let a process wait for a call."""
    (port,) = free_ports(1)
    env = {**os.environ, "PACELINE_MPI_SECRET": secret}
    argv = (sys.executable, "-m", "paceline.mpi", "serve", str(port))
    with subprocess.Popen(argv, env=env, text=True, stdout=subprocess.PIPE) as server:
        deadline = time.monotonic() + 20
        while not _listens(port):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        yield server, port
        server.kill()


def _listens(port: int) -> bool:
    rows = Path("/proc/net/tcp").read_text().splitlines()[1:]
    return any(row.split()[1].endswith(f":{port:04X}") and row.split()[3] == "0A" for row in rows)


def test_a_call_with_the_secret_is_carried_out(tmp_path: Path) -> None:
    """The line runs in a shell of the host, and the process ends with it."""
    with serving("s3cret") as (server, port):
        assert call("127.0.0.1", port, "s3cret", f"echo done > {tmp_path}/mark") == 0
        assert server.wait(20) == 0
    assert (tmp_path / "mark").read_text() == "done\n"


def test_strangers_are_turned_away(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A wrong secret, and bytes that are no call, change nothing; the right call still works."""
    with serving("right") as (server, port):
        assert call("127.0.0.1", port, "wrong", f"touch {tmp_path}/stranger") == 1
        with socket.create_connection(("127.0.0.1", port)) as line:
            line.sendall(b"GET / HTTP/1.0\r\n\r\n\n")
        assert call("127.0.0.1", port, "right", "true") == 0
        server.wait(20)
    assert list(tmp_path.iterdir()) == []
    assert "did not take the call" in capsys.readouterr().err


def test_a_proof_holds_for_one_question_and_one_line() -> None:
    """What was overheard cannot be said again, nor of another line."""
    proofs = {proof(s, n, line) for s in "ab" for n in "cd" for line in "ef"}
    assert len(proofs) == 8


def test_nobody_at_the_other_end_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """A host that does not wait is named with the port."""
    (port,) = free_ports(1)
    assert call("127.0.0.1", port, "x", "true", patience_s=0) == 1
    assert f"127.0.0.1 cannot be called at port {port}" in capsys.readouterr().err


def test_a_host_that_listens_later_is_waited_for() -> None:
    """A call that comes before the other end is up is made again until it is."""
    (port,) = free_ports(1)
    code = (
        "import sys; from paceline.mpi import call; "
        "sys.exit(call('127.0.0.1', int(sys.argv[1]), 's', 'true'))"
    )
    with subprocess.Popen((sys.executable, "-c", code, str(port))) as caller:
        time.sleep(0.5)
        assert caller.poll() is None
        env = {**os.environ, "PACELINE_MPI_SECRET": "s"}
        argv = (sys.executable, "-m", "paceline.mpi", "serve", str(port))
        subprocess.run(argv, env=env, check=True, timeout=60)
        assert caller.wait(60) == 0


def test_a_rank_has_torch_s_names_and_no_secret(tmp_path: Path) -> None:
    """Open MPI's numbers get the names that torch reads; our own variables are gone."""
    show = "import json, os; print(json.dumps([os.getcwd(), dict(os.environ)]))"
    env = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
        "PACELINE_MPI_SECRET": "x",
        "PACELINE_MPI_WORKDIR": str(tmp_path),
        "PACELINE_MPI_ARGV": json.dumps([sys.executable, "-c", show]),
        "OMPI_COMM_WORLD_RANK": "3",
        "OMPI_COMM_WORLD_SIZE": "4",
        "OMPI_COMM_WORLD_LOCAL_RANK": "1",
        "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
        "NODE_RANK": "1",
    }
    argv = (sys.executable, "-m", "paceline.mpi", "rank")
    done = subprocess.run(argv, env=env, capture_output=True, text=True, check=True)
    folder, seen = json.loads(done.stdout)
    assert folder == str(tmp_path)
    assert not [name for name in seen if name.startswith("PACELINE_MPI")]
    wanted = {"RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2"}
    assert {name: seen[name] for name in wanted} == wanted
    assert rank_variables(env)["GROUP_RANK"] == "1"
