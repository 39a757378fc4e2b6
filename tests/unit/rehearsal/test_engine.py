"""Engines of the lab: what one is told, and what is found of one that was killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from paceline.errors import EnvironmentFault
from paceline.rehearsal import engine as engines
from paceline.rehearsal.engine import Engine, engine, remove_recorded_engine
from paceline.rehearsal.hosts import SshHost
from paceline.rehearsal.images import machine_mounts
from paceline.rehearsal.network import plan_network


@pytest.fixture
def run_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder that takes the place of the machine's own."""
    folder = tmp_path / "run"
    monkeypatch.setattr(engines, "RUN_FOLDER", folder)
    return folder


def test_two_engines_share_nothing(tmp_path: Path) -> None:
    """Every path that an engine is told is below its own two folders."""
    told = [Engine(f"pl-t-{index}", tmp_path / str(index)).command() for index in range(2)]
    paths = [{word for word in words if "/" in word} for words in told]
    assert len(paths[0]) == 5
    assert paths[0].isdisjoint(paths[1])


def test_a_socket_has_a_short_path() -> None:
    """The engine's sockets fit the kernel's 107 letters, with the longest id of a lab too."""
    host = plan_network("abcdefgh", 240).hosts[-1]
    path = Engine(host.namespace, Path("/")).run_folder / "exec/containerd/containerd.sock.ttrpc"
    assert len(str(path)) < 100


def test_a_host_speaks_to_its_own_engine_only(tmp_path: Path) -> None:
    """Whoever logs in to a host is led to its engine, and never to that of this machine."""
    first, second = plan_network("t", 2).hosts
    told = SshHost(first, tmp_path, tmp_path / "key").configuration()
    assert f"DOCKER_HOST={Engine(first.namespace, tmp_path).address}" in told
    assert second.namespace not in told


def test_an_engine_that_was_killed_leaves_nothing(run_folder: Path, tmp_path: Path) -> None:
    """Removal ends what was started from the engine's own folder, and nothing else."""
    made = Engine("pl-t-0", tmp_path / "data")
    made.run_folder.mkdir(parents=True)
    made.data.mkdir()
    record = tmp_path / "engine.json"
    record.write_text(json.dumps({"namespace": made.namespace, "data": str(made.data)}))
    sleep = [sys.executable, "-c", "import time; time.sleep(60)"]
    ours = subprocess.Popen([*sleep, f"{made.run_folder}/exec/x"])
    other = subprocess.Popen([*sleep, f"{made.run_folder}-other/x"])
    try:
        remove_recorded_engine(record)
        assert ours.wait(10) == -9
        assert other.poll() is None
    finally:
        for process in (ours, other):
            process.kill()
            process.wait()
    assert not run_folder.exists()
    assert not made.data.exists()
    assert not record.exists()


@pytest.mark.usefixtures("run_folder")
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_the_mounts_of_an_engine_that_was_killed(tmp_path: Path) -> None:
    """An engine mounts its folder upon itself: that goes away, too, and so does the folder."""
    made = Engine("pl-t-0", tmp_path / "data")
    made.run_folder.mkdir(parents=True)
    (made.data / "inner").mkdir(parents=True)
    record = tmp_path / "engine.json"
    record.write_text(json.dumps({"namespace": made.namespace, "data": str(made.data)}))
    for folder in (made.data, made.data / "inner"):
        subprocess.run(("mount", "--bind", str(folder), str(folder)), check=True)
    remove_recorded_engine(record)
    assert not made.data.exists()
    assert str(tmp_path) not in Path("/proc/self/mountinfo").read_text()


def test_an_engine_of_somebody_else_is_left_alone(run_folder: Path, tmp_path: Path) -> None:
    """Where a host's engine is there already, none is started, and nothing is taken away."""
    host = plan_network("t", 1).hosts[0]
    kept = run_folder / host.namespace / "docker.sock"
    kept.parent.mkdir(parents=True)
    kept.touch()
    with pytest.raises(EnvironmentFault, match="there already"), engine(host, tmp_path / "e"):
        pass
    assert kept.exists()


def test_the_machine_is_mounted_read_only() -> None:
    """What is laid over the machine's image cannot be changed from inside."""
    mounts = machine_mounts()
    assert all(mount.endswith(":ro") for mount in mounts)
    assert "/usr:/usr:ro" in mounts
