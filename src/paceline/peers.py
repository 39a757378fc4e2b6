"""What a host finds out about its peers: `python -m paceline.peers COMMAND …`, JSON on stdout.

    route ADDRESS                    which interface, with which address, leads to ADDRESS
    listen ADDRESS PORT SECONDS      listen there and at a port of the system's choice
    dial SOURCE SECONDS NAME=ADDRESS:PORT …   connect to each from SOURCE, all at once

This module travels to the hosts: the standard library only, Python 3.8 or newer.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import selectors
import socket
import struct
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_GREETING = b"paceline\n"
_SIOCGIFCONF = 0x8912
_IFREQ_BYTES = 40  # a name of 16 bytes and an address of 24, on 64-bit Linux
_MOST_ADDRESSES = 512
_DISCARD_PORT = 9


def route(address: str) -> dict[str, Any]:
    """Return the interface and the address from which this host speaks to another.

    The kernel chooses the address when a datagram socket is connected; nothing is sent. It is
    then looked up among the interfaces', because the route to an address of our own would lead
    over the loopback.
    """
    found = addresses()
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(
            address, _DISCARD_PORT, type=socket.SOCK_DGRAM
        )[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.connect(place)
            source = str(probe.getsockname()[0])
    except OSError as error:
        return {"interface": None, "source": None, "error": str(error), "addresses": found}
    names = [name for name, known in found if known == source.partition("%")[0]]
    return {
        "interface": names[0] if names else None,
        "source": source,
        "error": None,
        "addresses": found,
    }


def addresses() -> list[tuple[str, str]]:
    """Return the interfaces of this host, each with an address."""
    return [*_ipv4_addresses(), *_ipv6_addresses()]


def _ipv4_addresses() -> list[tuple[str, str]]:
    import array  # noqa: PLC0415 - an extension module that nothing else here needs

    buffer = array.array("B", bytes(_IFREQ_BYTES * _MOST_ADDRESSES))
    place, _ = buffer.buffer_info()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        asked = struct.pack("iL", len(buffer), place)
        try:
            length = struct.unpack("iL", fcntl.ioctl(probe.fileno(), _SIOCGIFCONF, asked))[0]
        except OSError:
            return []
    data = buffer.tobytes()
    found = []
    for start in range(0, length, _IFREQ_BYTES):
        name = data[start : start + 16].split(b"\0", 1)[0].decode()
        # An address of its own may bear a label such as eth0:1.
        found.append((name.partition(":")[0], socket.inet_ntoa(data[start + 20 : start + 24])))
    return found


def _ipv6_addresses() -> list[tuple[str, str]]:
    try:
        with open("/proc/net/if_inet6", encoding="ascii") as file:  # noqa: PTH123
            rows = [line.split() for line in file]
    except OSError:
        return []
    return [(row[5], socket.inet_ntop(socket.AF_INET6, bytes.fromhex(row[0]))) for row in rows]


def listen(address: str, port: int, seconds: float) -> dict[str, Any]:
    """Listen at a port and at one of the system's choice, say so, and greet whoever comes."""
    with contextlib.ExitStack() as stack:
        try:
            servers = [
                stack.enter_context(_listener(address, wanted))
                for wanted in dict.fromkeys((port, 0))
            ]
        except OSError as error:
            return {"ports": [], "error": f"{error.strerror or error}"}
        _print({"ports": [server.getsockname()[1] for server in servers], "error": None})
        _greet(servers, time.monotonic() + seconds)
    return {"ended": True}


def _listener(address: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    server = socket.socket(family, socket.SOCK_STREAM)
    # As the rendezvous itself does, so that it can bind the port right after us.
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind((address, port))
    server.listen(128)
    server.settimeout(0)
    return server


def _greet(servers: list[socket.socket], until: float) -> None:
    with selectors.DefaultSelector() as selector:
        for server in servers:
            selector.register(server, selectors.EVENT_READ, data=server)
        # Closing our output is how we are told that we are wanted no more.
        while time.monotonic() < until and os.getppid() != 1:
            for key, _ in selector.select(timeout=0.2):
                with contextlib.suppress(OSError):
                    caller, _ = key.data.accept()
                    with caller:
                        caller.settimeout(1.0)
                        caller.sendall(_GREETING)


def dial(source: str, seconds: float, targets: dict[str, tuple[str, int]]) -> dict[str, Any]:
    """Connect to each target at once; return what came of each: None, or what went wrong."""
    import concurrent.futures  # noqa: PLC0415 - the other commands start quicker without it

    def attempt(place: tuple[str, int]) -> str | None:
        try:
            with socket.create_connection(
                place, timeout=seconds, source_address=(source, 0) if source else None
            ) as line:
                line.settimeout(seconds)
                answer = line.recv(len(_GREETING))
        except OSError as error:
            return _in_words(error)
        return None if _GREETING.startswith(answer) and answer else "somebody else answers there"

    with concurrent.futures.ThreadPoolExecutor(max_workers=max(1, len(targets))) as pool:
        found = pool.map(attempt, targets.values())
        return dict(zip(targets, found))


def _in_words(error: OSError) -> str:
    if isinstance(error, (socket.timeout, TimeoutError)):
        return "no answer"
    if isinstance(error, ConnectionRefusedError):
        return "refused"
    return error.strerror or str(error)


def _print(data: dict[str, Any]) -> None:
    print(json.dumps(data), flush=True)  # noqa: T201 - its caller reads it


def main(words: list[str]) -> int:
    """Carry out one command."""
    command, *rest = words or [""]
    if command == "route" and len(rest) == 1:
        _print(route(rest[0]))
    elif command == "listen" and len(rest) == 3:  # noqa: PLR2004
        _print(listen(rest[0], int(rest[1]), float(rest[2])))
    elif command == "dial" and len(rest) > 1:
        targets = {}
        for word in rest[2:]:
            name, _, place = word.rpartition("=")
            address, _, port = place.rpartition(":")
            targets[name] = (address, int(port))
        _print(dial(rest[0], float(rest[1]), targets))
    else:
        _print({"error": "say one of: route, listen, dial"})
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
