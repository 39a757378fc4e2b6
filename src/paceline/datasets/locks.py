"""A lock between the processes of a host: one works, the others wait for what it makes."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from paceline.datasets.nouns import Progress, silent


@contextlib.contextmanager
def exclusive(path: Path, progress: Progress = silent) -> Iterator[bool]:
    """Hold the lock file alone, and say whether that worked; it is let go with the process."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        yield _acquired(descriptor, progress)
    finally:
        os.close(descriptor)


def _acquired(descriptor: int, progress: Progress) -> bool:
    # A few network file systems know no locks. Everything that is made under the lock is made
    # under a name of its own and renamed, so that the work is then done twice, but done right.
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        progress("waiting for another process", 0, 0)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    except OSError:
        return False
    return True
