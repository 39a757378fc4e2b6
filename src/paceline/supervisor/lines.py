"""The lines between the supervisors of one job: the first host listens, the others call it.

Both ends prove that they know the run's secret; the secret itself never travels. A line that
breaks, or on which nothing comes, is made anew: TCP alone would try again later and later.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import os
import selectors
import socket
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from paceline.supervisor.job import Companions

BEAT, NEWS, BYE, HEARD = "beat", "news", "bye", "heard"
JOINED, REFUSED = "joined", "refused"
_LONGEST_LINE_BYTES = 4096
_MOST_STRANGERS = 64
_PROVES_WITHIN_S = 10.0
_DIAL_WITHIN_S = 1.0
_DIAL_EVERY_S = 0.2
_DIAL_AT_LEAST_EVERY_S = 2.0
_RENEW_AFTER_S = 3.0
_NONCE_BYTES = 16


def proof(secret: str, role: str, *words: str) -> str:
    """Return what only somebody who knows the run's secret can say of these words."""
    text = "\n".join(("companion", role, *words)).encode()
    return hmac.new(secret.encode(), text, "sha256").hexdigest()


class Line:
    """One connection that carries JSON, a line each; it never waits."""

    def __init__(self, sock: socket.socket) -> None:
        sock.settimeout(0)
        self.sock = sock
        self.open = True
        self.nonce = os.urandom(_NONCE_BYTES).hex()
        self.since = time.monotonic()
        self._rest = b""

    def say(self, **message: Any) -> None:
        """Send a message; a line that takes no more is broken."""
        data = json.dumps(message).encode() + b"\n"
        try:
            self.open = self.open and self.sock.send(data) == len(data)
        except OSError:
            self.open = False

    def heard(self) -> list[dict[str, Any]]:
        """Return the messages that have come."""
        try:
            data = self.sock.recv(65_536)
        except BlockingIOError:
            return []
        except OSError:
            data = b""
        *whole, self._rest = (self._rest + data).split(b"\n")
        self.open = bool(data) and len(self._rest) <= _LONGEST_LINE_BYTES
        try:
            return [_message(line) for line in whole]
        except (ValueError, TypeError):
            self.open = False
            return []


def _message(line: bytes) -> dict[str, Any]:
    return dict(json.loads(line))


class Hub:
    """The end of the first host: whoever proves to be one of the others is listened to."""

    def __init__(self, own: Companions, wake: int) -> None:
        self._own = own
        self._strangers: list[Line] = []
        self._joined: dict[str, Line] = {}
        self._server = _listener(own)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._server, selectors.EVENT_READ)
        self._selector.register(wake, selectors.EVENT_READ)

    def turn(self, wait_s: float) -> list[tuple[str, dict[str, Any]]]:
        """Wait for words, and return who said what."""
        heard: list[tuple[str, dict[str, Any]]] = []
        for key, _ in self._selector.select(wait_s):
            if isinstance(key.data, Line):
                heard += self._read(key.data)
            elif key.fileobj is self._server:
                self._accept()
            else:
                os.read(key.fd, 64)
        self._sweep()
        return heard

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            line = Line(self._server.accept()[0])
            self._selector.register(line.sock, selectors.EVENT_READ, line)
            self._strangers.append(line)
            line.say(nonce=line.nonce)

    def _read(self, line: Line) -> list[tuple[str, dict[str, Any]]]:
        heard: list[tuple[str, dict[str, Any]]] = []
        for message in line.heard():
            name = self._name_of(line)
            if name is not None:
                heard.append((name, message))
            elif line in self._strangers:
                heard += self._admit(line, message)
        return heard

    def _name_of(self, line: Line) -> str | None:
        return next((name for name, known in self._joined.items() if known is line), None)

    def _admit(self, line: Line, message: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
        name, nonce = str(message.get("host")), str(message.get("nonce"))
        wanted = proof(self._own.secret, "join", line.nonce, nonce, name)
        self._strangers.remove(line)
        if name not in self._own.others or not _same(message.get("proof"), wanted):
            self._close(line)
            return []
        self.let_go(name)
        self._joined[name] = line
        line.say(proof=proof(self._own.secret, "welcome", nonce, line.nonce))
        return [(name, {"kind": JOINED})]

    def say(self, to: str | None = None, **message: Any) -> None:
        """Tell one, or all who are on the line."""
        for name, line in list(self._joined.items()):
            if to in (None, name):
                line.say(**message)

    def let_go(self, name: str) -> None:
        """Close the line to somebody."""
        line = self._joined.pop(name, None)
        if line is not None:
            self._close(line)

    def _sweep(self) -> None:
        """Close what is broken, and strangers that prove nothing or are too many."""
        late = time.monotonic() - _PROVES_WITHIN_S
        few = self._strangers[-_MOST_STRANGERS:]
        for line in list(self._strangers):
            if not line.open or line.since < late or line not in few:
                self._strangers.remove(line)
                self._close(line)
        for name, line in list(self._joined.items()):
            if not line.open:
                self.let_go(name)

    def _close(self, line: Line) -> None:
        self._selector.unregister(line.sock)
        line.sock.close()

    def close(self) -> None:
        """Hang up."""
        for line in (*self._strangers, *self._joined.values()):
            line.sock.close()
        self._server.close()
        self._selector.close()


class Guest:
    """The end of any other host: it calls the first, again and again if need be."""

    def __init__(self, own: Companions, wake: int) -> None:
        self._own = own
        self._wake = wake
        self._line: Line | None = None
        self._dial_at = self._heard_at = time.monotonic()
        self._pause_s = _DIAL_EVERY_S
        self._selector = selectors.DefaultSelector()
        self._selector.register(wake, selectors.EVENT_READ)

    def turn(self, wait_s: float) -> list[tuple[str, dict[str, Any]]]:
        """Wait for words, and return who said what; without a line, try to have one."""
        if self._line is None and time.monotonic() >= self._dial_at:
            return [(self._own.first, {"kind": self._dial()})]
        heard: list[tuple[str, dict[str, Any]]] = []
        for key, _ in self._selector.select(wait_s if self._line else _DIAL_EVERY_S):
            if isinstance(key.data, Line):
                heard += [(self._own.first, message) for message in key.data.heard()]
            else:
                os.read(key.fd, 64)
        self._mind(heard=bool(heard))
        return heard

    def _mind(self, *, heard: bool) -> None:
        """Give a line up that is broken or dead."""
        now = time.monotonic()
        self._heard_at = now if heard else self._heard_at
        line = self._line
        if line is not None and (not line.open or now - self._heard_at > _RENEW_AFTER_S):
            self._drop()
            self._dial_at, self._pause_s = now, _DIAL_EVERY_S

    def _dial(self) -> str:
        """Call the first host; say what came of it."""
        self._pause_s = min(1.2 * self._pause_s, _DIAL_AT_LEAST_EVERY_S)
        self._dial_at = time.monotonic() + self._pause_s
        place = (self._own.address, self._own.port)
        try:
            sock = socket.create_connection(place, timeout=_DIAL_WITHIN_S)
        except ConnectionRefusedError:
            return REFUSED
        except OSError:
            return ""
        if not self._prove(sock):
            sock.close()
            return ""
        self._line = Line(sock)
        self._selector.register(sock, selectors.EVENT_READ, self._line)
        self._heard_at = time.monotonic()
        return JOINED

    def _prove(self, sock: socket.socket) -> bool:
        """Prove who we are, and let the other end prove that it is the one that we look for."""
        nonce, own = os.urandom(_NONCE_BYTES).hex(), self._own
        try:
            theirs = str(_answer(sock)["nonce"])
            shown = proof(own.secret, "join", theirs, nonce, own.host)
            words = {"host": own.host, "nonce": nonce, "proof": shown}
            sock.sendall(json.dumps(words).encode() + b"\n")
            return _same(_answer(sock)["proof"], proof(own.secret, "welcome", nonce, theirs))
        except (OSError, ValueError, KeyError, TypeError):
            return False

    def say(self, to: str | None = None, **message: Any) -> None:
        """Tell the first host."""
        del to
        if self._line is not None:
            self._line.say(**message)

    def let_go(self, name: str) -> None:
        """Close the line for good."""
        del name
        self._dial_at = float("inf")
        self._drop()

    def _drop(self) -> None:
        if self._line is not None:
            self._selector.unregister(self._line.sock)
            self._line.sock.close()
            self._line = None

    def close(self) -> None:
        """Hang up."""
        self.let_go(self._own.first)
        self._selector.close()


def _listener(own: Companions) -> socket.socket:
    server = socket.socket(socket.AF_INET6 if ":" in own.address else socket.AF_INET)
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        server.bind(("", own.port))
        server.listen(128)
    except OSError:
        server.close()
        raise
    server.settimeout(0)
    return server


def _answer(sock: socket.socket) -> dict[str, Any]:
    """Read one line and not a byte more: what follows it belongs to the line's owner."""
    text = b""
    while not text.endswith(b"\n"):
        byte = sock.recv(1)
        if not byte or len(text) > _LONGEST_LINE_BYTES:
            raise OSError("it hung up")
        text += byte
    return _message(text)


def _same(shown: object, wanted: str) -> bool:
    return isinstance(shown, str) and hmac.compare_digest(shown.encode(), wanted.encode())
