"""A terminal for tests: `paceline` in a folder and a home of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

WAIT_S = 60.0


class Terminal:
    """Types `paceline …` as a person would, with state and results in a fresh folder."""

    def __init__(self, root: Path) -> None:
        self.folder = root
        self.home = root.with_name("home")
        self.folder.mkdir(parents=True)
        # What this machine can do is measured once, and not again by the study of each test.
        shared = Path(tempfile.gettempdir()) / f"paceline-calibrations-{os.getuid()}"
        shared.mkdir(exist_ok=True)
        self.home.mkdir(exist_ok=True)
        (self.home / "calibrations").symlink_to(shared)
        self.env = {
            **os.environ,
            "PACELINE_HOME": str(self.home),
            # Every process of this terminal bears its mark, and so do their children.
            "PACELINE_TEST_TERMINAL": str(root),
        }

    def paceline(self, *words: str, timeout_s: float = 120.0) -> subprocess.CompletedProcess[str]:
        """Run a verb to its end."""
        return subprocess.run(
            [sys.executable, "-m", "paceline", *words],
            cwd=self.folder,
            env=self.env,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Start a verb and return while it goes on."""
        return subprocess.Popen(
            [sys.executable, "-m", "paceline", *words],
            cwd=self.folder,
            env=self.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def file(self, name: str, text: str) -> Path:
        """Write a file into the folder."""
        path = self.folder / name
        path.write_text(text)
        return path

    def results(self) -> list[str]:
        """Return the names of what lies in the results folder."""
        folder = self.folder / "paceline-results"
        return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []

    def jobs(self) -> list[str]:
        """Return the job folders that are left on the host."""
        folder = self.home / "jobs"
        return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []

    def processes(self) -> list[int]:
        """Return the living processes that this terminal has started, however indirectly."""
        mark = f"PACELINE_TEST_TERMINAL={self.folder}".encode()
        found = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit() or int(entry.name) == os.getpid():
                continue
            try:
                marked = mark in (entry / "environ").read_bytes().split(b"\0")
                alive = (entry / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
            except OSError:
                continue
            if marked and alive:
                found.append(int(entry.name))
        return found

    def clear_up(self) -> list[int]:
        """End what is left and return what that was."""
        left = self.processes()
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        return left


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait until something holds, and fail if it takes too long."""
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)
