"""Looks out for the notice that a spot machine gets two minutes before it is taken back.

The machine's own metadata service says so, at an address that only the machine itself reaches.
A thread asks, because an answer may take its time, and the supervisor has ranks to watch.
"""

from __future__ import annotations

import calendar
import contextlib
import http.client
import json
import os
import signal
import threading
import time
from urllib.parse import urlsplit

from paceline.supervisor.job import Lookout, Notice

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_TOKEN_PATH = "/latest/api/token"  # noqa: S105 - a path, not a token
_ACTION_PATH = "/latest/meta-data/spot/instance-action"
_TOKEN_LIVES_S = 21_600
_ANSWER_WITHIN_S = 2.0
_OK, _UNAUTHORISED, _NOT_FOUND = 200, 401, 404
# Where nobody answers, it is no such machine, or its service is ill: asked again, but seldom.
_SELDOM = 12


class NoAnswer(Exception):
    """The metadata service cannot be asked, or says what cannot be understood."""


class Metadata:
    """The metadata service, asked as IMDSv2 wants it: with a token."""

    def __init__(self, address: str) -> None:
        parts = urlsplit(address if "//" in address else f"http://{address}")
        self._host = parts.hostname or ""
        self._port = parts.port or 80
        self._token: str | None = None

    def notice(self) -> Notice | None:
        """Return the notice, if there is one; NoAnswer where nobody can say."""
        status, text = self._get(_ACTION_PATH)
        if status == _UNAUTHORISED:  # the token is too old
            self._token = None
            status, text = self._get(_ACTION_PATH)
        if status == _NOT_FOUND:
            return None
        if status != _OK:
            raise NoAnswer(f"HTTP {status}")
        return _read(text)

    def _get(self, path: str) -> tuple[int, str]:
        if self._token is None:
            wanted = {"X-aws-ec2-metadata-token-ttl-seconds": str(_TOKEN_LIVES_S)}
            status, text = self._ask("PUT", _TOKEN_PATH, wanted)
            if status != _OK:
                raise NoAnswer(f"no token: HTTP {status}")
            self._token = text.strip()
        return self._ask("GET", path, {"X-aws-ec2-metadata-token": self._token})

    def _ask(self, method: str, path: str, headers: dict[str, str]) -> tuple[int, str]:
        connection = http.client.HTTPConnection(self._host, self._port, timeout=_ANSWER_WITHIN_S)
        with contextlib.closing(connection):
            try:
                connection.request(method, path, headers=headers)
                answer = connection.getresponse()
                return answer.status, answer.read(65_536).decode("utf-8", "replace")
            except (OSError, http.client.HTTPException, ValueError) as error:
                raise NoAnswer(str(error) or type(error).__name__) from error


def _read(text: str) -> Notice:
    """Read `{"action": "terminate", "time": "2017-09-18T08:22:00Z"}`."""
    try:
        data: dict[str, Any] = json.loads(text)
        action = str(data["action"])
        moment = time.strptime(str(data["time"]), "%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, KeyError, TypeError) as error:
        raise NoAnswer(f"it says {text[:80]!r}") from error
    return Notice(action, float(calendar.timegm(moment)), time.time())


class Watch:
    """The thread that asks again and again; it leaves what it has seen in `seen`."""

    def __init__(self, lookout: Lookout, note: Callable[[str], None]) -> None:
        self._metadata = Metadata(lookout.address)
        self._every_s = lookout.every_s
        self._note = note
        self.seen: Notice | None = None

    def begin(self) -> None:
        """Begin to ask; the thread ends with its process."""
        # Signals go to the one who waits for them: the mask of our caller is inherited.
        threading.Thread(target=self._ask_on, name="lookout", daemon=True).start()

    def _ask_on(self) -> None:
        silent = 0
        while True:
            try:
                self.seen = self._metadata.notice()
            except NoAnswer as error:
                silent += 1
                if silent == 1:
                    self._note(f"the metadata service does not answer: {error}")
            else:
                silent = 0
            if self.seen is not None:
                os.kill(os.getpid(), signal.SIGUSR1)
                return
            time.sleep(self._every_s * (_SELDOM if silent > _SELDOM else 1))
