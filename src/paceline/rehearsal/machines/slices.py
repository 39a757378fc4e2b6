"""Whose public addresses are whose: each router on this machine holds a number of its own.

A number is held by an open socket, which the kernel lets go of when its holder ends, however it
ends: nothing has to be taken away. What a holder that was killed has left behind still leads to
its addresses, until it is cleared up; so a number is free when no route goes there either.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from ipaddress import IPv4Network
from pathlib import Path

from paceline.errors import EnvironmentFault
from paceline.rehearsal.machines.wires import PUBLIC_RANGE, SLICES, Router

_ROUTES = Path("/proc/net/route")


def claim_slice(
    namespace: str, letters: str, home: Router | None = None
) -> tuple[Router, socket.socket]:
    """Return a router whose addresses no other rehearsal on this machine has, and their hold.

    Each begins to look elsewhere, so that addresses that were just given back rest for a while.
    """
    begin = int(letters, 16) % len(SLICES)
    for number in (*SLICES[begin:], *SLICES[:begin]):
        router = Router(namespace, letters, number, home)
        hold = _hold(number)
        if hold is None:
            continue
        if not any(router.network.overlaps(one) for one in _routed()):
            return router, hold
        hold.close()
    raise EnvironmentFault("there are no addresses left for another rehearsal")


def _hold(number: int) -> socket.socket | None:
    """Hold a number, unless somebody has it."""
    hold = socket.socket(socket.AF_UNIX)
    try:
        # A name without a file: it belongs to this machine's network, as the addresses do.
        hold.bind(f"\0paceline-rehearsal/{number}")
    except OSError:
        hold.close()
        return None
    return hold


def _routed() -> Iterator[IPv4Network]:
    """Return the networks of the range that this machine has a way of its own to."""
    for line in _ROUTES.read_text().splitlines()[1:]:
        words = line.split()
        address, mask = (int.from_bytes(bytes.fromhex(words[at]), "little") for at in (1, 7))
        network = IPv4Network((address, mask.bit_count()))
        if network.subnet_of(PUBLIC_RANGE):
            yield network
