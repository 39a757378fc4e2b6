"""A job in a folder, for tests that let a real supervisor run real processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from paceline.supervisor import procfs
from paceline.supervisor.files import JobFolder
from paceline.supervisor.job import Job, JobProcess, JobState

PATIENCE_S = 60.0


def until(condition: Callable[[], object], what: str) -> None:
    """Wait for something that must happen; how long it takes is not tested."""
    give_up_at = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > give_up_at:
            raise AssertionError(f"waited in vain: {what}")
        time.sleep(0.02)


def python(code: str) -> tuple[str, ...]:
    """Return the command for some lines of Python."""
    return (sys.executable, "-c", code)


def shell(line: str) -> tuple[str, ...]:
    """Return the command for a line of shell."""
    return ("sh", "-c", line)


class SupervisedJob:
    """One job: written down, started, followed, stopped, and gone at the end."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.folder = JobFolder(str(path))
        self.job_id = f"test-{path.name}"

    def write(self, *argvs: Sequence[str], **options: Any) -> None:
        """Write a job of direct ranks; `options` are those of a Job."""
        self.write_processes(
            *(
                JobProcess(f"rank-{rank}", tuple(argv), ranks=(rank,))
                for rank, argv in enumerate(argvs)
            ),
            **options,
        )

    def write_processes(self, *processes: JobProcess, **options: Any) -> None:
        """Write a job."""
        self.path.mkdir(exist_ok=True)
        job = Job(self.job_id, processes, **options)
        (self.path / "job.json").write_text(job.to_json())

    def call(self, command: str, *words: str) -> dict[str, Any]:
        """Carry out a command of the supervisor and return its answer."""
        argv = self.argv(command, *words)
        done = subprocess.run(argv, capture_output=True, timeout=PATIENCE_S, check=False)
        assert done.stderr == b"", done.stderr.decode()
        answer: dict[str, Any] = json.loads(done.stdout)
        assert done.returncode == answer.get("exit_code", 0)
        return answer

    def argv(self, command: str, *words: str) -> tuple[str, ...]:
        """Return the command line for a command of the supervisor."""
        return (sys.executable, "-m", "paceline.supervisor", command, str(self.path), *words)

    def start(self) -> JobState:
        """Start the job."""
        return JobState.from_dict(self.call("start"))

    def status(self) -> JobState:
        """Ask for the state."""
        return JobState.from_dict(self.call("status"))

    def stop(self, *words: str) -> JobState:
        """Stop the job."""
        return JobState.from_dict(self.call("stop", *words))

    def ended(self) -> JobState:
        """Wait for the end and return the last state."""
        until(lambda: self.state().ended, "the end of the job")
        return self.state()

    def state(self) -> JobState:
        """Read the state file, with nobody's help."""
        return self.folder.known_state()

    def log(self, process: str) -> str:
        """Return what a process has written."""
        path = self.path / "logs" / f"{process}.log"
        return path.read_text() if path.exists() else ""

    def said(self, process: str, word: str) -> None:
        """Wait until a process has written a word."""
        until(lambda: word in self.log(process), f"{process} to say {word!r}")

    def alive(self) -> list[int]:
        """Return the processes that belong to the job."""
        variables = self.folder.variables(self.job_id)
        return [entry.pid for entry in procfs.marked(variables)]

    def kill_supervisor(self) -> None:
        """Kill the supervisor as hard as possible."""
        os.kill(self.state().supervisor_pid or 0, signal.SIGKILL)

    def keeper_pid(self) -> int:
        """Return the process above the supervisor."""
        entry = procfs.entry_of(self.state().supervisor_pid or 0)
        assert entry is not None
        return entry.parent

    def clear_up(self) -> None:
        """Leave nothing behind, whatever the test has done."""
        if self.folder.read_state() is not None:
            self.call("stop", "--grace", "0")
        until(self.unwatched, "the supervisor and its keeper to be gone")
        assert self.alive() == []

    def unwatched(self) -> bool:
        """Whether neither supervisor nor keeper is there any more."""
        lock = self.folder.try_lock()
        if lock is not None:
            os.close(lock)
        return lock is not None


def is_alive(pid: int) -> bool:
    """Whether a process lives; one that waits to be reaped does not."""
    entry = procfs.entry_of(pid)
    return entry is not None and entry.alive
