"""Taking pieces from whichever peer has them, and giving them on while they arrive."""

from __future__ import annotations

import binascii
import contextlib
import json
import os
import socket
import threading

from paceline.relay import line as wire
from paceline.relay.give import Giving, NothingToGive
from paceline.relay.line import LineFault, Peer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from paceline.relay.stock import Stock

# Longer than a few failing peers before us need to be passed over.
IDLE_S = 60.0
_LAST_WORDS_S = 5.0
_WRONG = "no piece of ours"


class Taker:
    """Takes what is missing from peers that know the secret, and gives everything to the next."""

    def __init__(self, stock: Stock, giving: Giving, idle_s: float = IDLE_S) -> None:
        self._stock = stock
        self._giving = giving
        self._idle_s = idle_s
        self._lock = threading.Lock()
        self._onward: threading.Thread | None = None
        self._lines: list[threading.Thread] = []

    def take(self, server: socket.socket) -> bool:
        """Take until everything is here, and has been given on; False if it stops coming."""
        threading.Thread(target=self._serve, args=(server,), daemon=True).start()
        whole = self._stock.wait_for_more(self._idle_s)
        if not whole:
            self._stock.give_up()
        return whole

    def finish(self) -> None:
        """Wait until the peers after us have what they need, and those before us know it all."""
        if self._onward is not None:
            self._onward.join()
        for line in list(self._lines):
            line.join(_LAST_WORDS_S)

    def _serve(self, server: socket.socket) -> None:
        with contextlib.suppress(OSError):  # it is closed when we have everything
            while True:
                line, _ = server.accept()
                hearing = threading.Thread(target=self._hear_out, args=(line,), daemon=True)
                self._lines.append(hearing)
                hearing.start()

    def _hear_out(self, line: socket.socket) -> None:
        """Take from one peer; whatever goes wrong, it may come again, or another may."""
        with line, contextlib.suppress(OSError, ValueError, KeyError, TypeError, LineFault):
            line.settimeout(self._idle_s)
            route = self._greet(line)
            self._go_on(route)
            self._take_pieces(line)

    def _greet(self, line: socket.socket) -> list[Peer]:
        nonce = os.urandom(16).hex()
        wire.say(line, {"nonce": nonce})
        message = wire.hear(line)
        theirs, route = str(message["nonce"]), str(message["route"])
        secret = self._giving.secret
        if not wire.same(message["proof"], wire.proof(secret, "give", nonce, theirs, route)):
            raise LineFault("a stranger")
        have = binascii.b2a_base64(self._stock.bitmap(), newline=False).decode()
        wire.say(line, {"have": have, "proof": wire.proof(secret, "take", theirs, have)})
        return [Peer(str(p["name"]), str(p["address"]), int(p["port"])) for p in json.loads(route)]

    def _go_on(self, route: list[Peer]) -> None:
        """Begin to give to the peers after us, as soon as somebody has told us who they are."""
        with self._lock:
            if self._onward is None and route:
                self._onward = threading.Thread(target=self._give, args=(route,), daemon=True)
                self._onward.start()

    def _give(self, route: list[Peer]) -> None:
        with contextlib.suppress(NothingToGive):
            self._giving.give(self._stock, route)

    def _take_pieces(self, line: socket.socket) -> None:
        largest = max((file.piece_bytes for file in self._stock.manifest.files), default=0)
        number, room = bytearray(wire.NUMBER.size), memoryview(bytearray(largest))
        while True:
            wire.receive_into(line, memoryview(number))
            index = wire.NUMBER.unpack(number)[0]
            if index == wire.END:
                break
            if index >= len(self._stock.pieces):
                raise LineFault(_WRONG)
            data = room[: self._stock.pieces[index].size]
            digest = wire.receive_hashed(line, data)
            if not self._stock.add(index, data, digest):
                raise LineFault(_WRONG)  # the peer sends it again on a new line
        if self._stock.complete:
            line.sendall(wire.DONE)
