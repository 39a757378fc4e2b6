"""Room for open files: each connection is one, and many systems allow 1,024, some only 256."""

from __future__ import annotations

import contextlib
import resource
from collections.abc import Iterator

# A connection needs one; one that is being made, or a process on this machine, some more.
_PER_HOST = 4
_BESIDES = 256


@contextlib.contextmanager
def room_for_hosts(count: int) -> Iterator[None]:
    """Allow as many open files as so many hosts need, as far as this machine lets us."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = count * _PER_HOST + _BESIDES
    most = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    if soft == resource.RLIM_INFINITY or soft >= most:
        yield
        return
    # A system may allow less than it says; then it stays as it is.
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    try:
        yield
    finally:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
