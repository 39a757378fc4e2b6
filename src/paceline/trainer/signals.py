"""Signals from outside: SIGTERM and SIGINT ask for the end, SIGUSR1 for a checkpoint.

A rank that waits for the network sees no Python signal handler run. So the signals are read by
a thread, which notes the wish and, if the training does not come to its end within the grace,
ends the process: whoever stops a job gets the machine back.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from paceline.trainer.wish import Wish

# Enough to finish a step and to write a checkpoint; less than the supervisor's own patience.
GRACE_S = 8.0
# On a slow or crowded host, as many of the steps as it may take until all ranks have heard.
_GRACE_STEPS = 4
_WISHES = {
    signal.SIGTERM: Wish.STOP,
    signal.SIGINT: Wish.STOP,
    signal.SIGUSR1: Wish.CHECKPOINT,
}
_EXIT_BASE = 128


class Mailbox:
    """Keeps what the signals asked for."""

    def __init__(self) -> None:
        self._checkpoint = False
        self.stopped_by: signal.Signals | None = None
        self.step_s = 0.0  # what the last step took

    @property
    def grace_s(self) -> float:
        """How long the training may take to come to its end once that is asked for."""
        return max(GRACE_S, _GRACE_STEPS * self.step_s)

    def put(self, number: signal.Signals) -> None:
        """Note a signal."""
        if _WISHES[number] is Wish.STOP:
            self.stopped_by = self.stopped_by or number
        else:
            self._checkpoint = True

    def take(self) -> Wish:
        """Return what is wished for now; a checkpoint is asked for once."""
        if self.stopped_by is not None:
            return Wish.STOP
        wish = Wish.CHECKPOINT if self._checkpoint else Wish.NOTHING
        self._checkpoint = False
        return wish

    @property
    def exit_code(self) -> int:
        """The code that says which signal ended us, as shells do."""
        return _EXIT_BASE + (self.stopped_by or signal.SIGTERM)


@contextmanager
def listening(mailbox: Mailbox, at_last: Callable[[], None]) -> Iterator[None]:
    """Put signals into the mailbox; call `at_last` before ending a process that hangs."""
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    former = {number: signal.signal(number, _ignore) for number in _WISHES}
    former_descriptor = signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
    done = threading.Event()
    reader = threading.Thread(
        target=_read, args=(read_end, mailbox, done, at_last), name="signals", daemon=True
    )
    reader.start()
    try:
        yield
    finally:
        done.set()
        signal.set_wakeup_fd(former_descriptor)
        for number, handler in former.items():
            signal.signal(number, handler)
        os.close(write_end)
        reader.join()
        os.close(read_end)


def _ignore(number: int, frame: object) -> None:
    # The byte that the interpreter writes to the pipe is what counts.
    del number, frame


def _read(
    descriptor: int, mailbox: Mailbox, done: threading.Event, at_last: Callable[[], None]
) -> None:
    while numbers := os.read(descriptor, 64):
        for number in numbers:
            if number in _WISHES:
                mailbox.put(signal.Signals(number))
        if mailbox.stopped_by is not None and not done.wait(mailbox.grace_s):
            at_last()
            os._exit(mailbox.exit_code)
