"""Hosts whose Python is as old as a host's may be: real jobs under a real Python 3.8."""

from __future__ import annotations

import json
import shutil

import pytest

from paceline.rehearsal.hosts import SshHost
from tests.fakes.mnist import write_mnist
from tests.fakes.pythons import old_python
from tests.fakes.terminal import Terminal, wait_until
from tests.lab import cluster_text

pytestmark = pytest.mark.e2e


@pytest.fixture
def hosts(lab: tuple[SshHost, ...], terminal: Terminal) -> tuple[SshHost, ...]:
    """Return two hosts of whose Pythons a spec names an old one."""
    python = old_python()
    if python is None:
        pytest.skip("there is no Python 3.8 on this machine")
    terminal.file("spec.yaml", f"{cluster_text(lab)}runtime: {{python: {python}}}\n")
    return lab


def test_a_job_runs_under_an_old_python(hosts: tuple[SshHost, ...], terminal: Terminal) -> None:
    """Facts, pairs, code, supervisor, output and files of a rank that is that Python itself."""
    line = "import os, sys; print(sys.version_info[:2], os.environ['RANK'])"
    script = terminal.file(
        "old.py", f"{line}\nopen(os.environ['PACELINE_OUT'] + '/x', 'w').close()"
    )
    done = terminal.paceline("train", "spec.yaml", "--script", str(script))
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == ["(3, 8) 0", "(3, 8) 1"]
    (run,) = (terminal.folder / "paceline-results").iterdir()
    assert (run / "out" / "x").exists()
    looked = terminal.paceline("doctor", "spec.yaml")
    assert all(f"ok    {host.address}: a job: " in looked.stdout for host in hosts), looked.stdout


def test_a_detached_job_is_followed_and_stopped_under_an_old_python(
    hosts: tuple[SshHost, ...], terminal: Terminal
) -> None:
    """A rank that waits is stopped on both hosts; one that fails ends the other."""
    words = ("run", "--spec", "spec.yaml", "--detach", "--", "sleep", "100")
    assert terminal.paceline(*words).returncode == 0
    wait_until(lambda: all(_at_work(host) for host in hosts))
    assert terminal.paceline("stop").returncode in (0, 5)
    assert not any(_at_work(host) for host in hosts)
    (listed,) = json.loads(terminal.paceline("ls", "--json").stdout)["runs"]
    assert listed["state"] == "stopped"
    fails = 'if [ "$RANK" = 1 ]; then echo no such thing >&2; exit 3; fi; sleep 100'
    done = terminal.paceline("run", "--spec", "spec.yaml", "--", "sh", "-c", fails)
    assert done.returncode == 5
    assert "no such thing" in done.stderr
    assert not any(_at_work(host) for host in hosts)


def _at_work(host: SshHost) -> bool:
    return len(host.processes()) > 1  # beside its sshd


def test_data_travel_between_old_pythons(hosts: tuple[SshHost, ...], terminal: Terminal) -> None:
    """A data set goes from host to host over their own links, and is verified there."""
    write_mnist(terminal.home / "data" / "mnist")
    terminal.env["PACELINE_DATA"] = str(terminal.home / "data")
    done = terminal.paceline("data", "fetch", "mnist", "--spec", "spec.yaml", "--json")
    for host in hosts:
        shutil.rmtree(host.home / ".cache" / "paceline" / "data" / "mnist")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert all(item["received_bytes"] > 50_000 for item in found)
    assert len({item["digest"] for item in found}) == 1


def test_mpirun_finds_old_pythons(hosts: tuple[SshHost, ...], terminal: Terminal) -> None:
    """Open MPI's daemon is started by the supervisor of each further host."""
    if shutil.which("mpirun") is None:
        pytest.skip("Open MPI is not installed")
    del hosts
    words = ("-s", "job.launcher=mpirun", "--", "printenv", "OMPI_COMM_WORLD_RANK")
    done = terminal.paceline("run", "--spec", "spec.yaml", *words)
    assert done.returncode == 0, done.stderr
    # Open MPI may have something of its own to say.
    assert sorted(filter(str.isdigit, done.stdout.splitlines())) == ["0", "1"]
