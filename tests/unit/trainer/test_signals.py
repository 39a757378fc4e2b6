"""Signals become wishes."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest

from paceline.trainer.signals import Mailbox, listening
from paceline.trainer.wish import Wish


def _wait_for(mailbox: Mailbox, wish: Wish) -> None:
    deadline = time.monotonic() + 10
    while mailbox.take() is not wish:
        assert time.monotonic() < deadline, f"no {wish}"
        time.sleep(0.01)


def test_a_checkpoint_is_asked_for_once() -> None:
    """SIGUSR1 is granted one time per signal."""
    mailbox = Mailbox()
    with listening(mailbox, pytest.fail):
        assert mailbox.take() is Wish.NOTHING
        os.kill(os.getpid(), signal.SIGUSR1)
        _wait_for(mailbox, Wish.CHECKPOINT)
        assert mailbox.take() is Wish.NOTHING


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_stop_stays(number: signal.Signals, code: int) -> None:
    """SIGTERM and Ctrl-C ask for the end until it comes; the exit code names the signal."""
    mailbox = Mailbox()
    with listening(mailbox, pytest.fail):
        os.kill(os.getpid(), number)
        _wait_for(mailbox, Wish.STOP)
        assert mailbox.take() is Wish.STOP
    assert mailbox.stopped_by is number
    assert mailbox.exit_code == code


def test_the_first_stop_counts() -> None:
    """Whoever asked first gave the reason."""
    mailbox = Mailbox()
    mailbox.put(signal.SIGTERM)
    mailbox.put(signal.SIGINT)
    assert mailbox.exit_code == 143


def test_everything_is_put_back() -> None:
    """Afterwards the former handlers are in place, and no thread is left."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGUSR1)}
    with listening(Mailbox(), pytest.fail):
        assert signal.getsignal(signal.SIGTERM) != before[signal.SIGTERM]
    assert {number: signal.getsignal(number) for number in before} == before
    assert "signals" not in {thread.name for thread in threading.enumerate()}


@pytest.mark.parametrize(("step_s", "grace_s"), [(0.2, 8.0), (15.0, 60.0)])
def test_slow_steps_get_more_grace(step_s: float, grace_s: float) -> None:
    """A training whose steps take long can still finish one, and write its checkpoint."""
    mailbox = Mailbox()
    mailbox.step_s = step_s
    assert mailbox.grace_s == grace_s
