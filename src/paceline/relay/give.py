"""Giving what a host has to the next one; a peer that fails is passed over for the one after."""

from __future__ import annotations

import binascii
import contextlib
import json
import os
import socket
from typing import NamedTuple

from paceline.relay import line as wire
from paceline.relay.line import HungUp, LineFault, Peer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from paceline.relay.stock import Stock

_DIAL_S = 5.0
_ANSWER_S = 60.0
# So long may a peer take nothing. Its own peers do not slow it down: it keeps what arrives.
_PATIENCE_S = 10.0
_ATTEMPTS = 3


class NothingToGive(Exception):
    """We shall never have all of it ourselves."""


def dial_peer(peer: Peer) -> socket.socket:
    """Connect to a peer at its own address."""
    return wire.dial(peer.address, peer.port, _DIAL_S)


class Giving(NamedTuple):
    """How pieces are given: the secret, the way to a peer, who is told of peers that fail."""

    secret: str
    on_skip: Callable[[Peer, str], None]
    dial: Callable[[Peer], socket.socket] = dial_peer

    def give(self, stock: Stock, route: Sequence[Peer]) -> Peer | None:
        """Give everything to the first peer of a route that can take it, and return that one.

        Those before it have been passed over, and those after it are its own affair.
        """
        for place, peer in enumerate(route):
            trouble = self._attempts(stock, peer, route[place + 1 :])
            if trouble is None:
                return peer
            self.on_skip(peer, trouble)
        return None

    def _attempts(self, stock: Stock, peer: Peer, after: Sequence[Peer]) -> str | None:
        """Give to one peer; return None, or why that cannot be done."""
        trouble = ""
        for _ in range(_ATTEMPTS):
            try:
                self._attempt(stock, peer, after)
            except (HungUp, ConnectionResetError, BrokenPipeError) as error:  # noqa: PERF203
                trouble = _in_words(error)  # it may have refused a piece that arrived damaged
            except (OSError, ValueError, KeyError, LineFault) as error:
                return _in_words(error)
            else:
                return None
        return trouble

    def _attempt(self, stock: Stock, peer: Peer, after: Sequence[Peer]) -> None:
        with contextlib.closing(self.dial(peer)) as line:
            line.settimeout(_ANSWER_S)
            theirs = self._greet(line, after)
            for index, piece in enumerate(stock.pieces):
                if theirs[index // 8] >> index % 8 & 1:
                    continue
                if not stock.wait_for(index):
                    raise NothingToGive
                line.sendall(wire.NUMBER.pack(index))
                with stock.reading(index) as descriptor:
                    wire.send_piece(line, descriptor, piece.offset, piece.size, _PATIENCE_S)
            line.sendall(wire.NUMBER.pack(wire.END))
            if line.recv(1) != wire.DONE:
                raise HungUp("it did not get all of it")

    def _greet(self, line: socket.socket, after: Sequence[Peer]) -> bytes:
        """Prove who we are, tell the peer its own peers, and hear what it has."""
        challenge = str(wire.hear(line)["nonce"])
        route = json.dumps([peer._asdict() for peer in after])
        nonce = os.urandom(16).hex()
        shown = wire.proof(self.secret, "give", challenge, nonce, route)
        wire.say(line, {"nonce": nonce, "route": route, "proof": shown})
        answer = wire.hear(line)
        have = str(answer["have"])
        if not wire.same(answer["proof"], wire.proof(self.secret, "take", nonce, have)):
            raise LineFault("somebody else answers there")
        return binascii.a2b_base64(have)


def _in_words(error: Exception) -> str:
    if isinstance(error, (socket.timeout, TimeoutError)):  # two before Python 3.10
        return "no answer"
    if isinstance(error, ConnectionRefusedError):
        return "refused"
    if isinstance(error, (ConnectionResetError, BrokenPipeError)):
        return "it hung up"
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return str(error) or type(error).__name__
