"""Keeps a job's supervisor in touch with those on its other hosts, from a thread of its own.

The thread sends beats and listens whatever the supervisor is busy with. What it finds is left in
`news`, and the supervisor is roused for it.
"""

from __future__ import annotations

import os
import threading
import time
from dataclasses import asdict

from paceline.supervisor.companions import (
    BEAT_S,
    LAUNCH_PATIENCE_S,
    PATIENCE_S,
    Ears,
    News,
)
from paceline.supervisor.job import LOST, STOPPED, SUCCEEDED, TIMEOUT
from paceline.supervisor.lines import BEAT, BYE, HEARD, JOINED, NEWS, REFUSED, Guest, Hub

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from paceline.supervisor.job import Companions

_TURN_S = 0.5
# What fails on one host makes others fail: whose fault it was is seen only if each may say so.
_LET_THEM_FAIL_S = 1.5
# For how long a goodbye that is not answered is repeated: a good end must not look like a loss,
# and whoever has yet to join is to hear of a bad one. Other ends come to each host by themselves.
_GOODBYES_S = {SUCCEEDED: PATIENCE_S, STOPPED: 1.0, TIMEOUT: 1.0}
_BAD_GOODBYE_S = 3.0


class Company:
    """The companions of one supervisor; what it has to act on is in `news`."""

    def __init__(
        self, own: Companions, note: Callable[[str], None], rouse: Callable[[], None]
    ) -> None:
        self.news: News | None = None
        self._own = own
        self._note = note
        self._rouse = rouse
        self._end: Hub | Guest | None = None
        self._ears = Ears()
        self._met: set[str] = set()
        self._gone: set[str] = set()
        self._known: News | None = None
        self._due_at = 0.0
        self._beat_at = self._listened_at = time.monotonic()
        self._outcome: str | None = None
        self._leave_at: float | None = None
        self._reader, self._writer = os.pipe()
        # Signals go to the one who waits for them: the mask of our caller is inherited.
        self._thread = threading.Thread(target=self._keep, name="company", daemon=True)

    def begin(self) -> None:
        """Begin to listen; the thread ends with its process."""
        self._thread.start()

    def tell(self, outcome: str | None) -> None:
        """Say how the job ends here; a good end is told when it is over."""
        if self._outcome is None and outcome not in (None, SUCCEEDED):
            self._outcome = outcome
            self._wake()

    def farewell(self, outcome: str | None) -> None:
        """Say goodbye, and wait a moment until it has been heard."""
        self._outcome = outcome
        within_s = _GOODBYES_S.get(outcome or "", _BAD_GOODBYE_S)
        self._leave_at = time.monotonic() + within_s
        self._wake()
        self._thread.join(within_s + _TURN_S)

    def _wake(self) -> None:
        os.write(self._writer, b"!")

    def _keep(self) -> None:
        own = self._own
        try:
            end = Hub(own, self._reader) if own.host == own.first else Guest(own, self._reader)
        except OSError as error:
            self._note(f"no other host can be listened to at port {own.port}: {error}")
            return
        self._end = end
        if own.host != own.first:
            self._ears = self._ears.waiting_for(own.first, LAUNCH_PATIENCE_S)
        goodbye = False
        while not self._is_over():
            self._turn(end)
            self._say(end)
            if self._leave_at is not None and not goodbye:
                goodbye = True
                end.say(kind=BYE)
        end.close()

    def _is_over(self) -> bool:
        """Whether nothing more is to be said or heard."""
        told = self._known is None or self.news is not None
        if self._leave_at is None:
            return told and self._own.first in self._gone
        return time.monotonic() >= self._leave_at or not self._awaited() - self._gone

    def _awaited(self) -> set[str]:
        """Return those whom our goodbye has to reach."""
        if self._outcome in _GOODBYES_S:
            return self._met
        return set(self._own.others if self._own.host == self._own.first else (self._own.first,))

    def _turn(self, end: Hub | Guest) -> None:
        """Listen for a while; only then is it judged who was silent."""
        heard = end.turn(_TURN_S)
        now = time.monotonic()
        self._ears = self._ears.listened(now - self._listened_at)
        self._listened_at = now
        for host, message in heard:
            self._understand(end, host, message)
        for host, silent_s in self._ears.lost:
            self._part_from(end, host)
            self._learn(end, News(host, LOST, silent_s, time.time() - silent_s))

    def _understand(self, end: Hub | Guest, host: str, message: dict[str, Any]) -> None:
        kind = message.get("kind")
        if kind == REFUSED:
            # It is there, and its job is over or has yet to begin.
            if host not in self._met and host not in self._gone:
                self._ears = self._ears.waiting_for(host, LAUNCH_PATIENCE_S)
            return
        if not kind or (host in self._gone and kind != JOINED):
            return
        if host not in self._gone:
            self._ears = self._ears.heard(host)
        if kind == JOINED:
            self._met.add(host)
            self._welcome(end, host)
        elif kind == NEWS:
            self._learn(end, _news(message))
        elif kind in (BYE, HEARD):
            if kind == BYE:
                end.say(host, kind=HEARD)
            self._part_from(end, host)

    def _welcome(self, end: Hub | Guest, host: str) -> None:
        """Tell whoever joins what it has missed."""
        if self._known is not None:
            end.say(host, kind=NEWS, **asdict(self._known))
        if self._leave_at is not None:
            end.say(host, kind=BYE)

    def _part_from(self, end: Hub | Guest, host: str) -> None:
        self._gone.add(host)
        self._ears = self._ears.without(host)
        end.let_go(host)

    def _learn(self, end: Hub | Guest, news: News) -> None:
        """Keep the first news of a bad end, and hand it on."""
        if self._known is not None:
            return
        self._known = news
        self._due_at = time.monotonic() + (0.0 if news.is_loss else _LET_THEM_FAIL_S)
        end.say(kind=NEWS, **asdict(news))

    def _say(self, end: Hub | Guest) -> None:
        now = time.monotonic()
        if self._outcome not in (None, SUCCEEDED) and self._known is None:
            self._learn(end, News(self._own.host, str(self._outcome), at=time.time()))
        if now >= self._beat_at and self._leave_at is None:
            self._beat_at = now + BEAT_S
            end.say(kind=BEAT)
        if self._known is not None and self.news is None and now >= self._due_at:
            self.news = self._known
            self._rouse()


def _news(message: dict[str, Any]) -> News:
    return News(
        str(message["host"]),
        str(message["outcome"]),
        float(message["silent_s"]),
        float(message["at"]),
    )
