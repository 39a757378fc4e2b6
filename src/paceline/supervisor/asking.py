"""A checkpoint asked of those processes that know what is meant, and of no others.

SIGUSR1 ends a process that does not expect it. So it goes only to ranks that catch it: our
trainers, and scripts that have a handler of their own. Launchers are left alone.
"""

from __future__ import annotations

import signal
from collections.abc import Iterable

from paceline.supervisor import procfs

_RANK_VARIABLES = (b"RANK=", b"OMPI_COMM_WORLD_RANK=", b"PMI_RANK=")


def ask_for_checkpoint(entries: Iterable[procfs.ProcessEntry]) -> list[int]:
    """Ask the ranks among some processes for a checkpoint; return the pids that were asked."""
    return [
        entry.pid
        for entry in entries
        if procfs.in_signal_set(entry.pid, signal.SIGUSR1, b"SigCgt")
        and _is_rank(entry.pid)
        and procfs.send(entry, signal.SIGUSR1)
    ]


def _is_rank(pid: int) -> bool:
    return any(variable.startswith(_RANK_VARIABLES) for variable in procfs.environment_of(pid))
