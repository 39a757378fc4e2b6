from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace

import pytest

from paceline.supervisor import procfs


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """Return a process that carries a mark, and end it afterwards."""
    process = subprocess.Popen(
        ("sh", "-c", "sleep 100 & echo; wait"),
        env={**os.environ, "PACELINE_JOB": "unit-42", "PACELINE_EVENTS": "/x"},
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    process.stdout.readline()
    yield process
    for entry in procfs.descendants(process.pid):
        procfs.send(entry, signal.SIGKILL)
    process.kill()
    process.wait()
    process.stdout.close()


def test_a_process_is_described(sleeper: subprocess.Popen[bytes]) -> None:
    """A living child has its parent, and a mark that does not change."""
    entry = procfs.entry_of(sleeper.pid)
    assert entry is not None
    assert (entry.pid, entry.parent, entry.alive) == (sleeper.pid, os.getpid(), True)
    assert procfs.mark_of(sleeper.pid) == procfs.mark_of(sleeper.pid)
    assert procfs.mark_of(sleeper.pid) != procfs.mark_of(os.getpid())


def test_nobody_is_no_entry() -> None:
    """A pid that cannot exist has neither entry nor mark."""
    assert procfs.entry_of(2**30) is None
    assert procfs.mark_of(2**30) is None


def test_the_dead_have_no_mark(sleeper: subprocess.Popen[bytes]) -> None:
    """A process that has ended and waits to be reaped does not count as living."""
    sleeper.kill()
    os.waitid(os.P_PID, sleeper.pid, os.WEXITED | os.WNOWAIT)
    assert procfs.mark_of(sleeper.pid) is None


def test_descendants_are_found_with_their_children(sleeper: subprocess.Popen[bytes]) -> None:
    """The tree below a process is walked to its leaves."""
    mine = [entry.pid for entry in procfs.descendants(os.getpid())]
    below = [entry.pid for entry in procfs.descendants(sleeper.pid)]
    assert sleeper.pid in mine
    assert sleeper.pid not in below
    assert set(below) < set(mine)


def test_a_mark_finds_its_processes_and_no_others(sleeper: subprocess.Popen[bytes]) -> None:
    """Every variable must agree, to the last character."""
    found = {entry.pid for entry in procfs.marked({"PACELINE_JOB": "unit-42"})}
    assert found >= {sleeper.pid}
    assert os.getpid() not in found
    assert not procfs.marked({"PACELINE_JOB": "unit-4"})
    assert not procfs.marked({"PACELINE_JOB": "unit-42", "PACELINE_EVENTS": "/y"})


def test_whoever_looks_for_a_mark_is_left_out() -> None:
    """A job may be ended from inside another: we and our parents are never found."""
    code = "from paceline.supervisor import procfs; print(procfs.marked({'PACELINE_JOB': 'u7'}))"
    inner = ("sh", "-c", '"$@"; true', "sh", sys.executable, "-c", code)
    env = {**os.environ, "PACELINE_JOB": "u7"}
    assert subprocess.run(inner, env=env, capture_output=True, check=True).stdout == b"[]\n"


def test_a_stranger_with_an_old_pid_is_not_hit(sleeper: subprocess.Popen[bytes]) -> None:
    """A signal goes only to the process that was meant."""
    entry = procfs.entry_of(sleeper.pid)
    assert entry is not None
    assert not procfs.send(replace(entry, started="1"), signal.SIGKILL)
    assert not procfs.send_marked(sleeper.pid, "another-boot/1", signal.SIGKILL)
    assert sleeper.poll() is None
    assert procfs.send(entry, signal.SIGKILL)
    assert sleeper.wait() == -signal.SIGKILL
    assert not procfs.send(entry, signal.SIGKILL)
