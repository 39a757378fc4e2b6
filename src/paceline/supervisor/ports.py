"""TCP ports that nothing listens on."""
# ruff: noqa: PTH123
# That rule asks for pathlib, whose import takes longer than the work that is done here.

from __future__ import annotations

import contextlib
import os
import socket

_LOWEST = 20000
_FEWEST = 1000
_ATTEMPTS = 50


def free_ports(count: int) -> list[int]:
    """Return up to `count` ports that were free on all of our addresses a moment ago.

    They lie below the range from which the system takes ports for outgoing connections, so that
    none of those takes one before the ranks meet there.
    """
    first_taken = _first_outgoing_port()
    span = first_taken - _LOWEST
    with contextlib.ExitStack() as held:
        ports: list[int] = []
        for _ in range(_ATTEMPTS * count):
            if len(ports) >= count:
                break
            wanted = _LOWEST + int.from_bytes(os.urandom(4), "big") % span if span > 0 else 0
            # Held until all are found, so that no port is found twice.
            port = _bind(held, wanted if span >= _FEWEST else 0)
            if port is not None:
                ports.append(port)
    return ports


def _bind(held: contextlib.ExitStack, wanted: int) -> int | None:
    listener = held.enter_context(socket.socket(socket.AF_INET, socket.SOCK_STREAM))
    try:
        listener.bind(("", wanted))
    except OSError:
        return None
    return int(listener.getsockname()[1])


def _first_outgoing_port() -> int:
    try:
        with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as file:
            return int(file.read().split()[0])
    except (OSError, ValueError, IndexError):
        return 0
