"""A host that nobody needs ends by itself; the script is run, with a shutdown of our own."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from paceline.planning.ec2.idling import ACTIVE_MARK, idle_script

IDLE_S = 2


@contextmanager
def watching(folder: Path) -> Iterator[Path]:
    """Run the watch on a machine whose homes and connections are ours; yield what shutdown makes.

    Without the real paths of this machine, of which it could end nothing anyway.
    """
    text = idle_script(IDLE_S)
    for real in ("/root/", "/home/", "/proc/net/"):
        assert real in text
        text = text.replace(real, f"{folder}{real}")
    script = folder / "script"
    script.write_text(text)
    script.chmod(0o755)
    programs = folder / "bin"
    programs.mkdir()
    down = folder / "down"
    for name in ("shutdown", "poweroff"):
        (programs / name).write_text(f'#!/bin/sh\necho "$@" > "{down}"\n')
        (programs / name).chmod(0o755)
    env = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}
    process = subprocess.Popen([str(script), "watch"], env=env, start_new_session=True)
    try:
        yield down
    finally:
        os.killpg(process.pid, 9)
        process.wait()


def make(path: Path, text: str = "") -> Path:
    """Write a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_a_host_that_nobody_needs_ends(tmp_path: Path) -> None:
    """After the time that was said, and not before."""
    begun = time.monotonic()
    with watching(tmp_path) as down:
        while not down.exists() and time.monotonic() - begun < 60:
            time.sleep(0.05)
        assert down.read_text() == "-P now\n"
        assert time.monotonic() - begun >= IDLE_S - 1


@pytest.mark.parametrize("why", ["a supervisor", "a connection"])
def test_a_host_at_work_stays(tmp_path: Path, why: str) -> None:
    """As long as the mark is touched, or an SSH connection is there; afterwards it ends."""
    mark = make(tmp_path / "home" / "ubuntu" / ACTIVE_MARK)
    head = "  sl  local_address rem_address   st\n"
    tcp = make(tmp_path / "proc" / "net" / "tcp", head)
    with watching(tmp_path) as down:
        for _ in range(3 * IDLE_S * 2):
            if why == "a supervisor":
                mark.touch()
            else:
                tcp.write_text(f"{head}   0: 0100007F:0016 0200007F:C350 01\n")
            time.sleep(0.5)
            assert not down.exists()
        tcp.write_text(f"{head}   0: 0100007F:0016 00000000:0000 0A\n")
        begun = time.monotonic()
        while not down.exists() and time.monotonic() - begun < 60:
            time.sleep(0.05)
        assert down.exists()
