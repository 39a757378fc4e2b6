"""A host vanishes from a job that nobody follows: the supervisors notice, and the job ends."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from paceline.rehearsal.hosts import SshHost
from paceline.supervisor.procfs import environment_of
from tests.fakes.terminal import Terminal, wait_until
from tests.lab import cluster_text, lab_of

pytestmark = pytest.mark.e2e

# It ends when it is killed only, as a rank may that hangs in a collective.
STUBBORN = (
    "import signal, sys, time\n"
    "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    "print('up', flush=True)\n"
    "time.sleep(300)\n"
)


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[SshHost, ...]]:
    """Return three hosts that answer to SSH."""
    with lab_of(3, tmp_path_factory.mktemp("three")) as hosts:
        yield hosts


@pytest.fixture
def hosts(three: tuple[SshHost, ...], terminal: Terminal) -> Iterator[tuple[SshHost, ...]]:
    """Return three hosts that a spec names, their links up and nothing at work afterwards."""
    terminal.file("spec.yaml", f"{cluster_text(three)}runtime: {{python: {sys.executable}}}\n")
    yield three
    for host in three:
        host.plug_in()
        wait_until(lambda host=host: not at_work(host))  # type: ignore[misc]


def at_work(host: SshHost) -> list[int]:
    """Return what runs on a host, but for its sshd."""
    found = []
    for pid in host.processes():
        try:
            line = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            continue
        if line and not line.startswith((b"sshd", b"/usr/sbin/sshd")):
            found.append(pid)
    return found


def ranks_on(host: SshHost) -> list[int]:
    """Return the ranks on a host."""
    return [pid for pid in at_work(host) if is_rank(pid)]


def is_rank(pid: int) -> bool:
    """Whether a process has a rank."""
    return any(item.startswith(b"RANK=") for item in environment_of(pid))


def detach(terminal: Terminal, hosts: tuple[SshHost, ...], *words: str, code: str) -> str:
    """Start a job that nobody follows; return its name once its ranks are up and have met."""
    script = terminal.file("rank.py", code)
    words = ("train", "spec.yaml", "--script", str(script), *words, "--detach")
    begun = terminal.paceline(*words)
    assert begun.returncode == 0, begun.stderr
    wait_until(lambda: all(ranks_on(host) for host in hosts))
    time.sleep(2.0)  # as long as supervisors may take to meet that were started together
    return begun.stdout.strip()


def failure_of_the_only_run(terminal: Terminal) -> dict[str, str]:
    """Return why the run failed, as `ls` tells it."""
    (run,) = json.loads(terminal.paceline("ls", "--json").stdout)["runs"]
    assert run["state"] == "failed"
    failure: dict[str, str] = run["failure"]
    return failure


@pytest.mark.parametrize(("launcher", "cut"), [("direct", 0), ("mpirun", 1)], ids=str)
def test_all_ranks_end_when_a_host_vanishes(
    hosts: tuple[SshHost, ...], terminal: Terminal, launcher: str, cut: int
) -> None:
    """Nobody follows; the ranks of all hosts end by themselves, and who looks hears the name."""
    if launcher == "mpirun" and shutil.which("mpirun") is None:
        pytest.skip("Open MPI is not installed")
    run = detach(terminal, hosts, "--launcher", launcher, code=STUBBORN)
    hosts[cut].unplug()
    wait_until(lambda: not any(at_work(host) for host in hosts))
    # It is still away, and the others say what became of the job.
    waited = terminal.paceline("wait", run)
    assert waited.returncode == 5, waited.stderr
    lost = hosts[cut].address
    assert f"the host {lost} is lost: no word from its supervisor for " in waited.stderr
    hosts[cut].plug_in()
    assert failure_of_the_only_run(terminal)["host"] == lost
    assert [list(host.home.glob(".paceline/jobs/*")) for host in hosts] == [[], [], []]


def test_a_host_that_is_back_is_named_all_the_same(
    hosts: tuple[SshHost, ...], terminal: Terminal
) -> None:
    """The host that was cut off takes the first for lost; what the others say counts."""
    detach(terminal, hosts, code=STUBBORN)
    hosts[2].unplug()
    wait_until(lambda: not any(at_work(host) for host in hosts))
    hosts[2].plug_in()
    assert failure_of_the_only_run(terminal)["host"] == hosts[2].address


def test_a_failure_on_one_host_ends_the_others(
    hosts: tuple[SshHost, ...], terminal: Terminal
) -> None:
    """Nobody follows, and ranks that would wait for the failed one are stopped; it is named."""
    fails = (
        "import os, time\nprint('up', flush=True)\ntime.sleep(4)\n"
        "if os.environ['RANK'] == '1':\n    raise ValueError('no luck')\ntime.sleep(300)\n"
    )
    detach(terminal, hosts, code=fails)
    wait_until(lambda: not any(at_work(host) for host in hosts))
    failure = failure_of_the_only_run(terminal)
    assert (failure["host"], failure["process"]) == (hosts[1].address, "rank-1")
    assert "ValueError: no luck" in failure["excerpt"]


def test_pauses_and_short_breaks_are_no_loss(
    hosts: tuple[SshHost, ...], terminal: Terminal
) -> None:
    """A paused supervisor, a broken link, no SSH server, an early end: the job goes on, and well.

    The second host ends at once; the first and the third are away for some seconds, one after
    the other.
    """
    code = (
        "import os, time\nprint('up', flush=True)\n"
        "time.sleep(6 if os.environ['RANK'] == '1' else 25)\n"
    )
    run = detach(terminal, hosts, code=code)
    supervisors = [pid for host in hosts for pid in at_work(host) if not is_rank(pid)]
    hosts[2].unplug()
    time.sleep(4.0)
    hosts[2].plug_in()
    time.sleep(3.0)
    for pid in supervisors:
        stop_and_go(pid, signal.SIGSTOP)
    time.sleep(5.0)
    for pid in supervisors:
        stop_and_go(pid, signal.SIGCONT)
    waited = terminal.paceline("wait", run)
    assert waited.returncode == 0, waited.stderr


def stop_and_go(pid: int, number: signal.Signals) -> None:
    """Pause a process of a lab host, or let it go on; one that has ended is left alone."""
    try:
        signal.pidfd_send_signal(os.pidfd_open(pid), number)
    except ProcessLookupError:
        return
