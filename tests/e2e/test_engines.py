"""Docker engines of hosts on this machine: each has its host's address, and leaves nothing."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from paceline.rehearsal.engine import Engine
from paceline.rehearsal.hosts import SshHost
from paceline.rehearsal.images import MACHINE_IMAGE, machine_mounts
from paceline.rehearsal.network import leftovers, plan_network
from tests.lab import engines_of, lab_of

pytestmark = pytest.mark.e2e
CONNECT = "import socket, sys; print(socket.create_connection((sys.argv[1], 22), 10).recv(7))"


def test_a_container_is_at_home_on_its_host(
    docker_lab: tuple[SshHost, ...], engines: tuple[Engine, ...]
) -> None:
    """A container on the host's network reaches the other host, with this machine's Python."""
    mounts = [word for mount in machine_mounts() for word in ("-v", mount)]
    said = engines[0].docker(
        "run", "--rm", "--init", "--network=host", *mounts, MACHINE_IMAGE,
        "python3", "-c", CONNECT, docker_lab[1].address,
    )  # fmt: skip
    assert said == "b'SSH-2.0'"
    assert engines[0].containers() == []


def test_who_logs_in_finds_the_engine(
    docker_lab: tuple[SshHost, ...], engines: tuple[Engine, ...]
) -> None:
    """`docker` on a host speaks to that host's engine."""
    engines[1].docker("create", "--name", "here", MACHINE_IMAGE, "true")
    try:
        assert [_docker_ps(host) for host in docker_lab] == ["", "here"]
    finally:
        engines[1].docker("rm", "here")


def _docker_ps(host: SshHost) -> str:
    options = ["StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "LogLevel=ERROR"]
    words = [word for option in options for word in ("-o", option)]
    line = "docker ps --all --format '{{.Names}}'"
    done = subprocess.run(
        ["ssh", "-F", "none", "-i", str(host.user_key), *words, f"root@{host.address}", line],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def test_an_engine_takes_its_containers_with_it(tmp_path: Path) -> None:
    """A container that is still at work ends with its engine; no mount and no process is left."""
    with lab_of(1, tmp_path / "lab") as (host,):
        with engines_of((host,)) as (engine,):
            mounts = [word for mount in machine_mounts() for word in ("-v", mount)]
            words = ("--network=host", *mounts, MACHINE_IMAGE, "sleep", "300")
            engine.docker("run", "--detach", *words)
            assert len(host.processes()) > 2
        assert len(host.processes()) == 1  # its sshd
        assert not engine.run_folder.exists()
        mounted = Path("/proc/self/mountinfo").read_text()
        assert str(engine.data) not in mounted
        assert str(engine.run_folder) not in mounted
    assert leftovers(plan_network(host.lab.namespace.split("-")[1], 1)) == ()
