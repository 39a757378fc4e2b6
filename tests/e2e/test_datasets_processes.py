"""Data sets among real processes and real disks: one builds, full disks are found."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.e2e

RANKS = 6


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Return an environment in which the user has an empty home."""
    home = tmp_path / "home"
    home.mkdir()
    return {**os.environ, "HOME": str(home), "TMPDIR": str(home), "PYTHONPATH": _source()}


def _source() -> str:
    import paceline

    return str(Path(paceline.__file__).parents[1])


def batch(images: int) -> bytes:
    """Return records of CIFAR-10's format."""
    pixels = hashlib.shake_256(b"").digest(3072)
    return b"".join(bytes([index % 10]) + pixels for index in range(images))


def prepare(root: Path, *words: str, environment: dict[str, str]) -> subprocess.Popen[str]:
    """Start a process that prepares CIFAR-10."""
    argv = [sys.executable, "-m", "paceline.datasets", "prepare", "cifar10", "--root", str(root)]
    return subprocess.Popen(
        [*argv, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )


def ended(process: subprocess.Popen[str]) -> tuple[int, dict[str, Any], str]:
    """Return the exit code, the answer and what was said on the way."""
    out, said = process.communicate(timeout=120)
    return process.returncode, json.loads(out), said


def test_all_ranks_of_a_host_may_ask_at_once(tmp_path: Path, environment: dict[str, str]) -> None:
    """One builds, the others wait for it, and all get the same file."""
    for number in range(1, 6):
        (tmp_path / f"data_batch_{number}.bin").write_bytes(batch(1000))
    ranks = [prepare(tmp_path, environment=environment) for _ in range(RANKS)]
    outcomes = [ended(rank) for rank in ranks]
    assert [code for code, _, _ in outcomes] == [0] * RANKS
    assert len({answer["path"] for _, answer, _ in outcomes}) == 1
    assert len({answer["digest"] for _, answer, _ in outcomes}) == 1
    builders = [said for _, _, said in outcomes if "preparing images" in said]
    assert len(builders) == 1
    made = sorted(path.suffix for path in (tmp_path / ".paceline-cache").iterdir())
    assert made == [".images", ".json", ".labels", ".lock"]


def test_a_killed_builder_does_not_stop_the_next(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    """The lock goes with the process, and what it left half-made is swept away."""
    (tmp_path / "data_batch_1.bin").write_bytes(batch(20_000))
    cache = tmp_path / ".paceline-cache"
    builder = prepare(tmp_path, environment=environment)
    deadline = time.monotonic() + 60
    while not list(cache.glob("*.making-*/.images")):
        assert builder.poll() is None, "the builder ended before it could be killed"
        assert time.monotonic() < deadline
        time.sleep(0.002)
    builder.send_signal(signal.SIGKILL)
    builder.communicate()
    assert list(cache.glob("*.making-*"))
    code, answer, _ = ended(prepare(tmp_path, environment=environment))
    assert (code, answer["count"]) == (0, 20_000)
    assert not list(cache.glob("*.making-*"))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Return a real file system of 24 MiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    argv = ["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", str(folder)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"a file system cannot be mounted here: {done.stderr.strip()}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_really_full_disk_is_said_with_advice(
    tmp_path: Path, small_disk: Path, environment: dict[str, str]
) -> None:
    """Nothing half-written is used or left, and the exit code is that of storage."""
    (tmp_path / "data_batch_1.bin").write_bytes(batch(1000))
    (small_disk / "filler").write_bytes(bytes(22 << 20))
    blocked = tmp_path / ".paceline-cache"
    blocked.write_text("in the way")
    full = {**environment, "PACELINE_CACHE": str(small_disk / "c"), "HOME": str(small_disk)}
    full["TMPDIR"] = str(small_disk)
    code, answer, _ = ended(prepare(tmp_path, environment=full))
    assert (code, answer["error"]) == (9, "StorageError")
    assert "PACELINE_CACHE" in answer["hint"]
    assert not list(small_disk.rglob("*.images"))


def test_a_disk_that_is_too_small_is_left_for_another(
    tmp_path: Path, small_disk: Path, environment: dict[str, str]
) -> None:
    """The set is prepared where there is room, and no piece stays on the full disk."""
    (tmp_path / "data_batch_1.bin").write_bytes(batch(10_000))
    crowded = {**environment, "PACELINE_CACHE": str(small_disk / "c")}
    code, answer, _ = ended(prepare(tmp_path, environment=crowded))
    assert code == 0
    assert answer["path"].startswith(str(tmp_path / ".paceline-cache"))
    assert not [path for path in small_disk.rglob("*") if path.is_file() and path.stat().st_size]


def test_data_on_a_read_only_disk_is_prepared_elsewhere(
    small_disk: Path, environment: dict[str, str]
) -> None:
    """The data is not touched; the user's cache takes the images."""
    (small_disk / "data_batch_1.bin").write_bytes(batch(100))
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    code, answer, _ = ended(prepare(small_disk, environment=environment))
    assert code == 0
    assert answer["path"].startswith(environment["HOME"])
    assert [path.name for path in small_disk.iterdir()] == ["data_batch_1.bin"]
