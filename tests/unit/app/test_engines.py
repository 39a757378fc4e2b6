"""How the engine of a host is found: docker, through sudo, podman, or what to type there."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from paceline.app.engines import EngineFound, find_engine
from paceline.errors import MissingProgram
from paceline.model.host import Host, HostFacts
from paceline.transports.local import LocalTransport

DENIED = "echo 'permission denied while trying to connect to the docker API' >&2; exit 1"
DOWN = "echo 'Cannot connect to the Docker daemon. Is the docker daemon running?' >&2; exit 1"
SUDO = 'shift 2; AS_ROOT=1 exec "$@"'


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder whose programs, and a shell's own, are all that the host has."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("sh", "id", "mkdir", "tail"):
        found = next(p for p in ("/bin", "/usr/bin") if Path(p, name).exists())
        (folder / name).symlink_to(Path(found, name))
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("HOME", str(tmp_path))
    return folder


def program(folder: Path, name: str, text: str) -> None:
    """Write a program."""
    (folder / name).write_text(f"#!/bin/sh\n{text}\n")
    (folder / name).chmod(0o755)


def find(platform: str = "", *, look_only: bool = False) -> EngineFound:
    """Find the engine of this machine, as it is now."""
    link = LocalTransport(Host("h", "127.0.0.1", "127.0.0.1"))
    facts = HostFacts("h", cores=1, platform=platform)
    return asyncio.run(find_engine(link, facts, look_only=look_only))


def test_looking_makes_nothing(programs: Path) -> None:
    """The folder for data is there when a run needs it, and not for having looked."""
    program(programs, "docker", "exit 0")
    cache = Path(find(look_only=True).cache)
    assert not cache.exists()
    find()
    assert cache.is_dir()


def test_docker_comes_first(programs: Path, tmp_path: Path) -> None:
    """An engine that answers is spoken to as it is, by whoever we are."""
    program(programs, "docker", "exit 0")
    program(programs, "podman", "exit 0")
    found = find()
    assert found.words == ("docker",)
    assert (found.uid, found.gid) == (os.getuid(), os.getgid())
    assert found.cache == str(tmp_path / ".cache" / "paceline")
    assert not found.through_sudo


def test_sudo_where_the_group_is_lacking(programs: Path) -> None:
    """Who may not speak to the engine, but may become root without a password, does so."""
    program(programs, "docker", f'[ "$AS_ROOT" ] && exit 0; {DENIED}')
    program(programs, "sudo", SUDO)
    found = find()
    assert found.words == ("sudo", "-n", "docker")
    assert found.through_sudo


def test_sudo_that_lets_no_variable_pass_is_of_no_use(programs: Path) -> None:
    """Ranks need their variables: where sudo keeps them back, the group is the way."""
    program(programs, "docker", f'[ "$AS_ROOT" ] && exit 0; {DENIED}')
    program(programs, "sudo", 'case $* in *--preserve-env*) exit 1 ;; esac; shift; AS_ROOT=1 "$@"')
    with pytest.raises(MissingProgram, match="permission denied") as caught:
        find()
    assert "usermod -aG docker" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("folder", "linger", "lingers"),
    [("/run/user/1000", "no", False), ("/run/user/1000", "yes", True), ("/tmp/mine", "no", True)],
)
def test_what_a_session_takes_along_is_seen(
    programs: Path, monkeypatch: pytest.MonkeyPatch, folder: str, linger: str, *, lingers: bool
) -> None:
    """Podman of somebody whom systemd forgets at the last logout is told from others."""
    program(programs, "podman", "exit 0")
    program(programs, "loginctl", f"echo {linger}")
    monkeypatch.setenv("XDG_RUNTIME_DIR", folder)
    assert find().lingers == lingers


def test_podman_stands_in(programs: Path) -> None:
    """Where docker does not answer and podman does, podman it is."""
    program(programs, "docker", DOWN)
    program(programs, "podman", '[ "$1" = info ]')
    assert find().words == ("podman",)


@pytest.mark.parametrize(
    ("docker", "platform", "message", "hint"),
    [
        (None, "Debian GNU/Linux 12", "there is no docker engine", "apt-get install -y docker.io"),
        (None, "Amazon Linux 2023", "there is no docker engine", "dnf install -y docker"),
        (DENIED, "", "permission denied", "usermod -aG docker"),
        (DOWN, "", "Cannot connect to the Docker daemon", "systemctl enable --now docker"),
    ],
)
def test_no_engine_says_what_to_type(
    programs: Path, docker: str | None, platform: str, message: str, hint: str
) -> None:
    """The error names the host, the engine's own words, and the line to type there."""
    if docker is not None:
        program(programs, "docker", docker)
    with pytest.raises(MissingProgram, match=message) as caught:
        find(platform)
    assert caught.value.host == "h"
    assert hint in str(caught.value.hint)
