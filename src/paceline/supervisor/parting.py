"""In which order the processes of a job are asked to end, and which of them are not waited for.

A launcher or a rank looks after its own children while it can: it may be writing a checkpoint
with their help. So the job's own processes are asked, and what they leave behind when they are
gone. Open MPI is the exception: asked itself, it kills its ranks after a second, whatever they
are at. So ranks of its that may have something to save are asked by us, and Open MPI when they
are gone; if none of them has, it is asked before them, and they need not wait for that second.

A rank that has a handler for SIGTERM has the whole grace. One that ignores the signal would only
let it pass, and is killed after a second.
"""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass, field

from paceline.supervisor import procfs
from paceline.supervisor.procfs import ProcessEntry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

# Enough for a launcher to ask its ranks.
DEAF_GRACE_S = 1.0
# What Open MPI takes to clear up when its ranks have gone. Asked meanwhile, it may crash.
_MPI_ENDS_WITHIN_S = 5.0
# What it takes to hear us; ranks that are gone before that, it takes for a failure.
_MPI_HEARS_WITHIN_S = 0.2
_MPI_RANK = b"OMPI_COMM_WORLD_RANK="
_RANK_VARIABLES = (b"RANK=", _MPI_RANK)


@dataclass
class Parting:
    """The end of a job's processes: whom we have asked, and since when ranks could have heard."""

    _asked: set[tuple[int, str]] = field(default_factory=set)
    _since: dict[tuple[int, str], float] = field(default_factory=dict)
    _mpi_own_from: float = 0.0
    _mpi_ranks_from: float | None = None

    def go_on(self, entries: list[ProcessEntry], own: Collection[int], now: float) -> None:
        """Ask those of the living processes whose turn it is; kill the ranks that are deaf."""
        ranks = topmost_ranks(entries)
        mpi = [entry.pid for entry in ranks if _carries(entry.pid, (_MPI_RANK,))]
        turn = {*self._own_turn(own, mpi, now), *self._mpi_turn(mpi, now)}
        for entry in entries:
            whose = entry.pid in turn or not (own or mpi)
            if whose and _identity(entry) not in self._asked:
                self._asked.add(_identity(entry))
                procfs.send(entry, signal.SIGTERM)
        for entry in ranks:
            self._end_if_deaf(entry, now)

    def _own_turn(self, own: Collection[int], mpi: Collection[int], now: float) -> Collection[int]:
        if any(heeds(pid, signal.SIGTERM) for pid in mpi):
            self._mpi_own_from = now + _MPI_ENDS_WITHIN_S
        return own if now >= self._mpi_own_from else ()

    def _mpi_turn(self, mpi: Collection[int], now: float) -> Collection[int]:
        if self._mpi_ranks_from is None:
            waits = now >= self._mpi_own_from
            self._mpi_ranks_from = now + (_MPI_HEARS_WITHIN_S if waits else 0.0)
        return mpi if now >= self._mpi_ranks_from else ()

    def _end_if_deaf(self, entry: ProcessEntry, now: float) -> None:
        identity = _identity(entry)
        # One that its parent has left behind is a helper, perhaps, of a rank that still saves.
        if entry.parent == os.getpid() and identity not in self._asked:
            return
        since = self._since.setdefault(identity, now)
        if now - since >= DEAF_GRACE_S and not heeds(entry.pid, signal.SIGTERM):
            procfs.send(entry, signal.SIGKILL)


def _identity(entry: ProcessEntry) -> tuple[int, str]:
    return entry.pid, entry.started


def topmost_ranks(entries: list[ProcessEntry]) -> list[ProcessEntry]:
    """Return the processes that are ranks, without what they have started themselves."""
    found = {entry.pid: entry for entry in entries if _carries(entry.pid, _RANK_VARIABLES)}
    parents = {entry.pid: entry.parent for entry in entries}

    def is_below_a_rank(pid: int) -> bool:
        while (parent := parents.get(pid)) is not None:
            if parent in found:
                return True
            pid = parent
        return False

    return [entry for pid, entry in found.items() if not is_below_a_rank(pid)]


def _carries(pid: int, names: tuple[bytes, ...]) -> bool:
    return any(variable.startswith(names) for variable in procfs.environment_of(pid))


def heeds(pid: int, signum: int) -> bool:
    """Whether a process has a handler for a signal, or waits for it with the signal blocked."""
    return procfs.in_signal_set(pid, signum, b"SigCgt", b"SigBlk")
