"""The line between two hosts: both prove that they know the secret, then pieces go one way.

    taker   {"nonce"}
    giver   {"nonce", "route", "proof"}     the peers that the taker is to give to, nearest first
    taker   {"have", "proof"}               which pieces it has already, a bit for each
    giver   NUMBER and the bytes of a piece, again and again, then END
    taker   DONE                            it has them all

The secret itself never travels. The pieces are not encrypted, as the ranks' own traffic is not,
and what arrives is taken only if its digest is the one that the manifest names.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import select
import socket
import struct
from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

END = 0xFFFFFFFF
DONE = b"D"
NUMBER = struct.Struct("!I")
_LONGEST_LINE_BYTES = 64 << 20
_SEND_BYTES = 1 << 20


class LineFault(Exception):
    """The other end is silent, or is not who it should be."""


class HungUp(LineFault):
    """The other end has let go; it may be spoken to again."""


class Peer(NamedTuple):
    """A host that takes what we have: its name, and where it listens."""

    name: str
    address: str
    port: int


def proof(secret: str, role: str, *words: str) -> str:
    """Return what only somebody who knows the secret can say of these words."""
    text = "\n".join((role, *words)).encode()
    return hmac.new(secret.encode(), text, "sha256").hexdigest()


def same(shown: object, wanted: str) -> bool:
    """Compare two proofs in a time that tells nothing."""
    return hmac.compare_digest(str(shown).encode("utf-8", "replace"), wanted.encode())


def dial(address: str, port: int, seconds: float) -> socket.socket:
    """Connect to a peer."""
    line = socket.create_connection((address, port), timeout=seconds)
    line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return line


def listener(address: str) -> socket.socket:
    """Listen at a port of the system's choice, on all interfaces of the address's family."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    server = socket.socket(family, socket.SOCK_STREAM)
    server.bind(("::" if family == socket.AF_INET6 else "", 0))
    server.listen(16)
    return server


def say(line: socket.socket, message: dict[str, Any]) -> None:
    """Send a message."""
    line.sendall(json.dumps(message).encode() + b"\n")


def hear(line: socket.socket) -> dict[str, Any]:
    """Receive a message, and not a byte of what follows it."""
    data = bytearray()
    while not data.endswith(b"\n"):
        # What follows the line belongs to the pieces: look before taking.
        seen = line.recv(65536, socket.MSG_PEEK)
        end = seen.find(b"\n")
        taken = line.recv(len(seen) if end < 0 else end + 1)
        data += taken
        if not taken or len(data) > _LONGEST_LINE_BYTES:
            raise HungUp("it hung up")
    message: dict[str, Any] = json.loads(data.decode())
    return message


def receive_into(line: socket.socket, room: memoryview) -> None:
    """Fill a buffer with what arrives."""
    for _ in arriving(line, room):
        pass


def receive_hashed(line: socket.socket, room: memoryview) -> str:
    """Fill a buffer, and return the digest of what has arrived.

    Each part is hashed while it is in the processor's cache and the next one is on its way.
    """
    digest = hashlib.sha256()
    for part in arriving(line, room):
        digest.update(part)
    return digest.hexdigest()


def arriving(line: socket.socket, room: memoryview) -> Iterator[memoryview]:
    """Fill a buffer; yield each part of it as it has arrived."""
    done = 0
    while done < len(room):
        count = line.recv_into(room[done:])
        if not count:
            raise HungUp("it hung up")
        yield room[done : done + count]
        done += count


def send_piece(
    line: socket.socket, descriptor: int, offset: int, size: int, patience_s: float
) -> None:
    """Send a part of a file straight from the system's cache."""
    done = 0
    while done < size:
        try:
            sent = os.sendfile(
                line.fileno(), descriptor, offset + done, min(_SEND_BYTES, size - done)
            )
        except BlockingIOError:
            if not select.select((), (line,), (), patience_s)[1]:
                raise LineFault(f"it took nothing for {patience_s:g} s") from None
            continue
        if not sent:
            raise LineFault("the file has become shorter while it was sent")
        done += sent
