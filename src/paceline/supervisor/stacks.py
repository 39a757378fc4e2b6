"""Where ranks that get nowhere are: their stacks, which Python itself writes when it is aborted.

The supervisor starts every process with PYTHONFAULTHANDLER, so that any Python, also that of an
untouched script, writes the stacks of its threads to its log when it gets SIGABRT, even while it
hangs in the middle of a library. All ranks of the host are stopped first: none of them must
notice that its peer is gone, and cry out, before it has been asked itself.
"""
# ruff: noqa: PTH119
# Those rules ask for pathlib, whose import would add a third to the start of a job.

from __future__ import annotations

import contextlib
import os
import resource
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass

from paceline.supervisor import procfs
from paceline.supervisor.files import JobFolder, read_tail
from paceline.supervisor.job import JobProcess
from paceline.supervisor.procfs import ProcessEntry

_RANK_VARIABLES = (b"RANK", b"OMPI_COMM_WORLD_RANK")
_WITHIN_S = 3.0
_LOOK_AGAIN_S = 0.02
_DUMP_BYTES = 64 * 1024
_HEADER = "Fatal Python error: Aborted"
_THREAD = "(most recent call first):"
# Whose innermost frames lie here waits for others, and is not the one that they wait for.
_WAITING = ("/torch/distributed/", "/torch/autograd/", "/trainer/reduction.py", "/trainer/wire.py")
_INNERMOST = 4


@dataclass(frozen=True)
class RankProcess:
    """A rank's Python, and the name of the job's process that it belongs to."""

    entry: ProcessEntry
    rank: int
    name: str


@dataclass(frozen=True)
class Stack:
    """What a rank was at; no text where it did not say."""

    rank: int
    name: str
    text: str

    @property
    def waits(self) -> bool:
        """Whether it only waits for other ranks."""
        main = self.text.rpartition(_THREAD)[2].strip().splitlines()[:_INNERMOST]
        return any(place in line for place in _WAITING for line in main)


def rank_processes(
    pids: dict[int, str], processes: tuple[JobProcess, ...], marked: list[ProcessEntry]
) -> list[RankProcess]:
    """Return the topmost Python of each rank, in the order of ranks.

    They are below the job's processes, by their pids; those in containers are only known by the
    variables that mark them as the job's.
    """
    below = {entry.pid: name for pid, name in pids.items() for entry in _with_all_below(pid)}
    names = {rank: process.name for process in processes for rank in process.ranks}
    pythons = {entry.pid: entry for entry in marked if _is_python(entry.pid)}
    found: list[RankProcess] = []
    for entry in pythons.values():
        rank = _rank_of(entry.pid)
        name = below.get(entry.pid) or (None if rank is None else names.get(rank))
        if rank is not None and name is not None and not _under(entry, rank, pythons):
            found.append(RankProcess(entry, rank, name))
    return sorted(found, key=lambda item: item.rank)


def _with_all_below(pid: int) -> Iterator[ProcessEntry]:
    entry = procfs.entry_of(pid)
    if entry is not None:
        yield entry
        yield from procfs.descendants(pid)


def _under(entry: ProcessEntry, rank: int, pythons: dict[int, ProcessEntry]) -> bool:
    """Whether a process above it is the same rank already, as above a worker that loads data."""
    above = pythons.get(entry.parent)
    while above is not None:
        if _rank_of(above.pid) == rank:
            return True
        above = pythons.get(above.parent)
    return False


def _is_python(pid: int) -> bool:
    try:
        return os.path.basename(os.readlink(f"/proc/{pid}/exe")).startswith(("python", "pypy"))
    except OSError:
        return False


def _rank_of(pid: int) -> int | None:
    values = dict(word.partition(b"=")[::2] for word in procfs.environment_of(pid))
    for name in _RANK_VARIABLES:
        if values.get(name, b"").isdigit():
            return int(values[name])
    return None


def dump(folder: JobFolder, ranks: list[RankProcess]) -> list[Stack]:
    """Let each rank write its stack, which ends it, and return what they have written."""
    for item in ranks:
        procfs.send(item.entry, signal.SIGSTOP)
    return [Stack(item.rank, item.name, _dumped(folder, item)) for item in ranks]


def _dumped(folder: JobFolder, item: RankProcess) -> str:
    path = folder.log_path(item.name)
    known = _size(path)
    with contextlib.suppress(OSError, ValueError):
        # A limit of one byte keeps the system from writing the memory of all ranks to the disk.
        resource.prlimit(item.entry.pid, resource.RLIMIT_CORE, (1, 1))
    if not procfs.send(item.entry, signal.SIGABRT):
        return ""
    procfs.send(item.entry, signal.SIGCONT)
    give_up_at = time.monotonic() + _WITHIN_S
    while _lives(item.entry) and time.monotonic() < give_up_at:
        time.sleep(_LOOK_AGAIN_S)
    added = max(0, min(_DUMP_BYTES, _size(path) - known))
    return stack_in(read_tail(path, added).decode("utf-8", "replace")) if added else ""


def _lives(entry: ProcessEntry) -> bool:
    now = procfs.entry_of(entry.pid)
    return now is not None and now.alive and now.started == entry.started


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)  # noqa: PTH202
    except OSError:
        return 0


def stack_in(text: str) -> str:
    """Return the stacks in what a Python has written at its end; the list of modules is left out.

    Launchers put their own words before lines; what matters starts after the last header.
    """
    _, found, dumped = text.rpartition(_HEADER)
    return "\n".join(_frames(dumped)).strip() if found else ""


def _frames(dumped: str) -> Iterator[str]:
    for line in dumped.splitlines()[1:]:
        if "Extension modules:" in line:
            return
        if _THREAD in line or '  File "' in line or line.strip().startswith("..."):
            yield line.rstrip()
