"""Who is at the other end of a connection on this machine, and its end."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

_REMOTE, _LOCAL, _INODE = 2, 1, 9


def end_caller(pid: int | None, environ: Mapping[str, Any]) -> None:
    """Kill the process that made a call: the one that is named, else whoever is connected."""
    target = pid if pid is not None else caller(environ)
    if target is not None and target != os.getpid():
        with contextlib.suppress(ProcessLookupError):
            os.kill(target, signal.SIGKILL)


def caller(environ: Mapping[str, Any]) -> int | None:
    """Return the pid of the process that holds the other end of a request's connection."""
    inode = _inode(int(environ.get("REMOTE_PORT") or 0), int(environ.get("SERVER_PORT") or 0))
    if inode is None:
        return None
    link = f"socket:[{inode}]"
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if any(str(entry.readlink()) == link for entry in (process / "fd").iterdir()):
                return int(process.name)
    return None


def _inode(local_port: int, remote_port: int) -> str | None:
    """Return the inode of the socket that leads from one port to another."""
    for words in _sockets():
        ports = [int(words[index].rpartition(":")[2], 16) for index in (_LOCAL, _REMOTE)]
        if ports == [local_port, remote_port]:
            return words[_INODE]
    return None


def _sockets() -> Iterator[list[str]]:
    lines = Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]
    return (line.split() for line in lines)
