"""One rank of a training, from meeting the others to its exit code."""

from __future__ import annotations

import os
import re
import traceback

from paceline.errors import PacelineError, TransportError
from paceline.events import Place, Reporter
from paceline.trainer.complaint import complain
from paceline.trainer.memory import keep_memory
from paceline.trainer.options import Options
from paceline.trainer.session import train
from paceline.trainer.setup import make_ready
from paceline.trainer.signals import Mailbox
from paceline.trainer.threads import settle_threads
from paceline.trainer.world import World, joined, place_from

_CRASHED = 1
_INTERRUPTED = 130
_LOST_PEER = ("closed by peer", "reset by peer", "timed out", "broken pipe")


class Run:
    """One rank's run; remembers what a failure must still be told to."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.place = Place()
        self.reporter: Reporter | None = None
        self.mailbox = Mailbox()

    def to_its_end(self) -> int:
        """Train, whatever comes of it, and return the exit code."""
        try:
            self.place = place_from(os.environ, self.options.local_rank)
            return self.carry_out()
        except BaseException as error:  # noqa: BLE001 - whatever ends a rank is reported
            return self.failed(error)

    def carry_out(self) -> int:
        """Meet the others, train, part."""
        keep_memory()
        notes = settle_threads(self.place)
        with joined(self.place, timeout_s=self.options.timeout_s) as world:
            return self._train(world, notes)

    def _train(self, world: World, notes: tuple[str, ...]) -> int:
        ready = make_ready(self.options, world, notes)
        self.reporter = Reporter(place=self.place, info=ready.info)
        stopped = train(self.options, world, ready, self.reporter, self.mailbox)
        self.reporter.end("stopped" if stopped else "ok")
        return self.mailbox.exit_code if stopped else 0

    def failed(self, error: BaseException) -> int:
        """Tell people and Paceline why this rank ends; return the exit code."""
        if self.mailbox.stopped_by is not None:
            # The others stopped as well, perhaps a moment earlier: that is no failure.
            self._end("stopped", None)
            return self.mailbox.exit_code
        if isinstance(error, SystemExit):
            raise error
        if isinstance(error, KeyboardInterrupt):
            self._end("stopped", None)
            return _INTERRUPTED
        if _is_lost_peer(error):
            error = _lost_peer(error, self.place)
        self._end("failed", f"{type(error).__name__}: {error}")
        if isinstance(error, PacelineError):
            return complain(error)
        traceback.print_exception(error)
        return _CRASHED

    def _end(self, status: str, reason: str | None) -> None:
        reporter = self.reporter or Reporter(place=self.place)
        reporter.end(status, error=reason)


def _is_lost_peer(error: BaseException) -> bool:
    text = str(error).lower()
    return isinstance(error, RuntimeError) and any(words in text for words in _LOST_PEER)


def _lost_peer(error: BaseException, place: Place) -> TransportError:
    # The library's words, without the place in its source and its advice to library users.
    words = re.sub(r"^\[\S+:\d+\] ", "", str(error).strip()).split(". This is")[0]
    return TransportError(
        f"rank {place.rank} lost another rank: {words.splitlines()[0]}",
        hint="the rank that failed first says why in its own output",
    )
