"""A checkpoint asked of those processes that know what is meant, and of no others.

SIGUSR1 ends a process that does not expect it. So it goes only to ranks that catch it: our
trainers, and scripts that have a handler of their own. Launchers are left alone.
"""
# ruff: noqa: PTH123
# That rule asks for pathlib, whose import would slow down the start of a job.

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterable

from paceline.supervisor import procfs

_RANK_VARIABLES = (b"RANK=", b"OMPI_COMM_WORLD_RANK=", b"PMI_RANK=")


def ask_for_checkpoint(entries: Iterable[procfs.ProcessEntry]) -> list[int]:
    """Ask the ranks among some processes for a checkpoint; return the pids that were asked."""
    return [
        entry.pid
        for entry in entries
        if _catches(entry.pid, signal.SIGUSR1)
        and _is_rank(entry.pid)
        and procfs.send(entry, signal.SIGUSR1)
    ]


def _catches(pid: int, signum: int) -> bool:
    with contextlib.suppress(OSError, ValueError), open(f"/proc/{pid}/status", "rb") as file:
        for line in file:
            if line.startswith(b"SigCgt:"):
                return bool(int(line.split()[1], 16) >> (signum - 1) & 1)
    return False


def _is_rank(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            variables = file.read().split(b"\0")
    except OSError:
        return False
    return any(variable.startswith(_RANK_VARIABLES) for variable in variables)
