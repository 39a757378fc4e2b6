"""Tells whether the ranks of a job still get anywhere: what they write, and what they compute."""
# ruff: noqa: PTH110, PTH116
# Those rules ask for pathlib, whose import would add a third to the start of a job.

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from paceline.supervisor import procfs
from paceline.supervisor.files import JobFolder, read_tail
from paceline.supervisor.job import EVENTS_FOLDER, JobProcess

_ITERATION = b'"kind":"iteration"'
_TAIL_BYTES = 4096
# Less than this share of a core is what waiting costs: a poll here, a heartbeat there.
_AT_WORK = 0.05


@dataclass(frozen=True)
class Beat:
    """What a process had written at the last look, what it had computed, and since when."""

    written: tuple[int, ...]
    ticks: int
    looked_at: float
    alive_at: float
    iterates: bool = False


class Pulse:
    """Watches the processes of a job.

    What a rank writes, into its log or as events, is progress. Until it has reported its first
    iteration, computing is progress as well: a script that reports nothing is not disturbed
    while it works, however silent it is. What works `elsewhere`, in a container, cannot be seen
    computing, and is taken to do so.
    """

    def __init__(
        self,
        folder: JobFolder,
        processes: tuple[JobProcess, ...],
        now: float,
        *,
        elsewhere: bool = False,
    ) -> None:
        self._folder = folder
        self._elsewhere = elsewhere
        self._processes = {process.name: process for process in processes}
        self._beats = {name: Beat((0,), 0, now, now) for name in self._processes}

    def look(self, pids: Mapping[int, str], now: float) -> None:
        """Look at the processes that run, by their pids."""
        busy = ticks_below(pids)
        for name in pids.values():
            before = self._beats[name]
            files = [*self._files(self._processes[name])]
            written = tuple(_size(path) for path in files)
            iterates = before.iterates or (
                written != before.written
                and any(_ITERATION in read_tail(path, _TAIL_BYTES) for path in files[1:])
            )
            moved = written != before.written or (
                not iterates
                and (self._elsewhere or _worked(busy[name] - before.ticks, now - before.looked_at))
            )
            alive_at = now if moved else before.alive_at
            self._beats[name] = Beat(written, busy[name], now, alive_at, iterates)

    def silent_s(self, name: str, now: float) -> float:
        """Return for how long a process has got nowhere."""
        return now - self._beats[name].alive_at

    def hung(self, names: frozenset[str], limit_s: float, now: float) -> bool:
        """Whether one that reported iterations is silent for so long, or all that run are."""
        silent = {name for name in names if self.silent_s(name, now) >= limit_s}
        return bool(names) and (
            silent == names or any(self._beats[name].iterates for name in silent)
        )

    def _files(self, process: JobProcess) -> Iterator[str]:
        """Yield the log of a process, and the event files of its ranks that there are."""
        yield self._folder.log_path(process.name)
        for rank in process.ranks:
            path = self._folder.within(EVENTS_FOLDER, f"rank-{rank}.jsonl")
            if os.path.exists(path):
                yield path


def _worked(ticks: int, seconds: float) -> bool:
    return ticks > _AT_WORK * seconds * os.sysconf("SC_CLK_TCK")


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def ticks_below(pids: Mapping[int, str]) -> dict[str, int]:
    """Return what each process and all below it have computed so far, in clock ticks."""
    entries = {entry.pid: entry for entry in procfs.all_entries()}
    totals = dict.fromkeys(pids.values(), 0)
    for entry in entries.values():
        above: procfs.ProcessEntry | None = entry
        while above is not None and above.pid not in pids:
            above = entries.get(above.parent)
        if above is not None:
            totals[pids[above.pid]] += entry.ticks
    return totals
