"""The processes of this machine as /proc shows them, and signals that cannot hit a stranger."""
# ruff: noqa: PTH123, PTH208
# Those rules ask for pathlib, whose import would add a third to the start of a job.

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass

_DEAD_STATES = frozenset({"Z", "X", "x"})


@dataclass(frozen=True)
class ProcessEntry:
    """One process; `started` tells it from a later one with the same pid.

    `ticks` is what it has computed so far, in ticks of the clock.
    """

    pid: int
    parent: int
    session: int
    started: str
    alive: bool
    ticks: int = 0


def boot_id() -> str:
    """Return a word that changes when the machine is started anew."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read(8)
    except OSError:
        return ""


def entry_of(pid: int) -> ProcessEntry | None:
    """Look a process up; None if there is none."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            text = file.read()
    except OSError:
        return None
    # The name in the second field may itself contain blanks and brackets.
    words = text[text.rindex(b")") + 2 :].decode("ascii", "replace").split()
    return ProcessEntry(
        pid=pid,
        parent=int(words[1]),
        session=int(words[3]),
        started=words[19],
        alive=words[0] not in _DEAD_STATES,
        ticks=int(words[11]) + int(words[12]),
    )


def mark_of(pid: int) -> str | None:
    """Return what identifies a living process among all that have had or will have its pid."""
    entry = entry_of(pid)
    return f"{boot_id()}/{entry.started}" if entry is not None and entry.alive else None


def all_entries() -> Iterator[ProcessEntry]:
    """Walk through the processes that we can see."""
    for name in os.listdir("/proc"):
        if name.isdigit():
            entry = entry_of(int(name))
            if entry is not None:
                yield entry


def descendants(root: int) -> list[ProcessEntry]:
    """Return the living processes below one, children before grandchildren."""
    children: dict[int, list[ProcessEntry]] = {}
    for entry in all_entries():
        if entry.alive:
            children.setdefault(entry.parent, []).append(entry)
    found: list[ProcessEntry] = []
    parents = [root]
    while parents:
        below = [entry for parent in parents for entry in children.get(parent, ())]
        found += below
        parents = [entry.pid for entry in below]
    return found


def marked(variables: dict[str, str]) -> list[ProcessEntry]:
    """Return the living processes that carry all of these environment variables.

    We ourselves and our parents are left out: a job may be ended from inside another job.
    """
    wanted = {f"{name}={value}".encode() for name, value in variables.items()}
    ours = set(_line_of_descent(os.getpid()))
    return [
        entry
        for entry in all_entries()
        if entry.alive and entry.pid not in ours and wanted <= environment_of(entry.pid)
    ]


def _line_of_descent(pid: int) -> Iterator[int]:
    entry = entry_of(pid)
    while entry is not None:
        yield entry.pid
        entry = entry_of(entry.parent) if entry.parent else None


def environment_of(pid: int) -> set[bytes]:
    """Return the variables that a process was started with, as `NAME=VALUE`."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return set(file.read().split(b"\0"))
    except OSError:
        return set()


def in_signal_set(pid: int, signum: int, *sets: bytes) -> bool:
    """Whether a signal is in one of these sets of a process, such as the caught ones, `SigCgt`."""
    with contextlib.suppress(OSError, ValueError), open(f"/proc/{pid}/status", "rb") as file:
        for line in file:
            name, _, mask = line.partition(b":")
            if name in sets and int(mask, 16) >> (signum - 1) & 1:
                return True
    return False


def send(entry: ProcessEntry, signum: int) -> bool:
    """Send a signal to exactly this process; False if it is gone."""
    with contextlib.ExitStack() as stack:
        try:
            # Held through a descriptor, the pid cannot pass to another between look and shot.
            handle = os.pidfd_open(entry.pid)
            stack.callback(os.close, handle)
        except ProcessLookupError:
            return False
        except (OSError, AttributeError):
            handle = None
        now = entry_of(entry.pid)
        if now is None or now.started != entry.started:
            return False
        try:
            if handle is None:
                os.kill(entry.pid, signum)
            else:
                signal.pidfd_send_signal(handle, signum)
        except (ProcessLookupError, PermissionError):
            return False
    return True


def send_marked(pid: int, mark: str, signum: int) -> bool:
    """Send a signal to the process that `mark_of` once described; False if it is gone."""
    entry = entry_of(pid)
    if entry is None or not entry.alive or f"{boot_id()}/{entry.started}" != mark:
        return False
    return send(entry, signum)
