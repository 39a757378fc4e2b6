"""How a use case is run to its end, and what Ctrl-C does to it meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, TypeVar

from paceline.errors import Interrupted

T = TypeVar("T")
OnInterrupt = Callable[[], None]

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_LOOK_UP_EVERY_S = 0.5


def _nothing_to_add() -> Interrupted:
    return Interrupted("interrupted")


def complete(
    work: Coroutine[Any, Any, T],
    *,
    interrupted: Callable[[], Interrupted] = _nothing_to_add,
    on_interrupt: OnInterrupt | None = None,
) -> T:
    """Run a use case to its end; Ctrl-C lets it clean up first and then raises Interrupted.

    `on_interrupt` is called as soon as Ctrl-C is pressed, for cleaning up may take a while.
    `interrupted` is asked afterwards what has become of the work.
    """
    stopper = _Stopper(on_interrupt)
    try:
        with _borrowed_signals() as numbers:
            if not _loop_runs_here():
                return asyncio.run(stopper.run_listening(work, numbers))
            # Inside a notebook a loop is running already, and ours gets a thread of its own.
            for number in numbers:
                signal.signal(number, lambda *_: stopper.stop())
            return _in_thread(stopper.run(work))
    except asyncio.CancelledError as error:
        raise interrupted() from error


class _Stopper:
    """Cancels one piece of work, once, from whichever thread it is asked."""

    def __init__(self, on_interrupt: OnInterrupt | None) -> None:
        self._on_interrupt = on_interrupt
        self._asked = False
        self._cancel: Callable[[], object] | None = None

    def stop(self) -> None:
        """Cancel; once is enough: a second Ctrl-C must not cut the cleaning up short."""
        if self._asked:
            return
        self._asked = True
        if self._cancel is not None:
            self._cancel()
        if self._on_interrupt is not None:
            self._on_interrupt()

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Do the work so that it can be cancelled."""
        loop, task = asyncio.get_running_loop(), asyncio.ensure_future(work)

        def cancel() -> None:
            with contextlib.suppress(RuntimeError):  # the loop has just come to its own end
                loop.call_soon_threadsafe(task.cancel)

        self._cancel = cancel
        if self._asked:  # before the loop was there
            cancel()
        return await task

    async def run_listening(
        self, work: Coroutine[Any, Any, T], numbers: tuple[signal.Signals, ...]
    ) -> T:
        """Do the work on the main thread, where the loop itself can hear signals."""
        loop = asyncio.get_running_loop()
        # Listening needs the descriptor by which signals wake up a loop: it may be another's.
        others = signal.set_wakeup_fd(-1) if numbers else -1
        for number in numbers:
            loop.add_signal_handler(number, self.stop)
        try:
            return await self.run(work)
        finally:
            for number in numbers:
                loop.remove_signal_handler(number)
            if numbers:
                signal.set_wakeup_fd(others)


@contextlib.contextmanager
def _borrowed_signals() -> Iterator[tuple[signal.Signals, ...]]:
    """Yield the signals that we may listen to; whoever listened before gets them back."""
    if threading.current_thread() is not threading.main_thread():
        yield ()  # Python gives signals to the main thread only
        return
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    try:
        yield _SIGNALS
    finally:
        for number, handler in before.items():
            if handler is not None:  # else it was not set from Python, and cannot be put back
                signal.signal(number, handler)


def _loop_runs_here() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _in_thread(work: Coroutine[Any, Any, T]) -> T:
    outcome: list[T] = []
    errors: list[BaseException] = []

    def body() -> None:
        try:
            outcome.append(asyncio.run(work))
        except BaseException as error:  # noqa: BLE001 - carried over to the caller's thread
            errors.append(error)

    thread = threading.Thread(target=body, name="paceline")
    thread.start()
    while thread.is_alive():
        # A signal that comes just before the waiting begins would go unheard until its end.
        thread.join(_LOOK_UP_EVERY_S)
    if errors:
        raise errors[0]
    return outcome[0]
