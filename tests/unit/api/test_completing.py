"""Use cases that are run to their end, or interrupted on the way."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from paceline.api.completing import complete
from paceline.errors import Interrupted

# A loop runs already, as in a notebook; the work is begun from inside it, and then SIGINT comes.
NOTEBOOK = """\
import asyncio, os, signal, sys, threading, time
from paceline.api.completing import complete
from paceline.errors import Interrupted

async def study():
    print("at work", flush=True)
    try:
        await asyncio.sleep(60)
    finally:
        await asyncio.sleep(0.1)
        print("cleaned up", flush=True)

def cell():
    try:
        complete(study(), on_interrupt=lambda: print("stopping", flush=True))
    except Interrupted as error:
        print("raised", error, flush=True)
    left = [item.name for item in threading.enumerate() if item.name == "paceline"]
    print("left", left, signal.getsignal(signal.SIGINT) is signal.default_int_handler, flush=True)
    loop.stop()

loop = asyncio.new_event_loop()
loop.call_soon(cell)
loop.run_forever()
loop.close()
"""


def interrupted() -> Interrupted:
    """Return the words of a use case."""
    return Interrupted("the run was stopped", hint="its files: /there")


async def press(number: signal.Signals) -> str:
    """Send ourselves a signal in the middle of some work."""
    os.kill(os.getpid(), number)
    await asyncio.sleep(60)
    return "not interrupted"


@pytest.fixture
def handlers() -> Iterator[dict[int, object]]:
    """Set handlers of our own for the signals, and put back those of the test runner."""
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, lambda *_: None) for number in numbers}
    yield {number: signal.getsignal(number) for number in numbers}
    for number, handler in before.items():
        signal.signal(number, handler)


async def answer() -> int:
    """Return what everything comes to."""
    return 42


def test_work_that_is_let_be_returns_its_outcome(handlers: dict[int, object]) -> None:
    """The outcome comes back, and the caller's own handlers are where they were."""
    assert complete(answer()) == 42
    assert {number: signal.getsignal(number) for number in handlers} == handlers


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_is_said_in_the_words_of_the_use_case(
    number: signal.Signals, handlers: dict[int, object]
) -> None:
    """A signal ends the work with the words that the use case gives, and is told at once."""
    heard: list[str] = []
    with pytest.raises(Interrupted) as caught:
        complete(press(number), interrupted=interrupted, on_interrupt=lambda: heard.append("now"))
    assert (caught.value.message, caught.value.hint) == ("the run was stopped", "its files: /there")
    assert heard == ["now"]
    assert {item: signal.getsignal(item) for item in handlers} == handlers


def test_the_sign_of_life_comes_before_the_cleaning_up() -> None:
    """`on_interrupt` is called while the work still cleans up, and only once."""
    steps: list[str] = []

    async def slow_to_end() -> None:
        try:
            await press(signal.SIGINT)
        finally:
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.sleep(0.05)
            steps.append("cleaned up")

    with pytest.raises(Interrupted):
        complete(slow_to_end(), on_interrupt=lambda: steps.append("stopping"))
    assert steps == ["stopping", "cleaned up"]


def test_the_wakeup_of_another_loop_is_given_back() -> None:
    """A loop of the caller's that listens to signals hears them afterwards too."""
    loop = asyncio.new_event_loop()
    heard: list[str] = []
    try:
        loop.add_signal_handler(signal.SIGTERM, lambda: heard.append("theirs"))
        assert complete(answer()) == 42
        os.kill(os.getpid(), signal.SIGTERM)
        loop.run_until_complete(asyncio.sleep(0.01))
    finally:
        loop.close()
    assert heard == ["theirs"]


def test_work_in_another_thread_leaves_signals_alone() -> None:
    """Outside the main thread nothing is listened to, and the work is done all the same."""
    outcomes: list[int] = []
    thread = threading.Thread(target=lambda: outcomes.append(complete(answer())))
    thread.start()
    thread.join()
    assert outcomes == [42]


def test_an_error_inside_a_running_loop_comes_through() -> None:
    """In a notebook the work's own error reaches the cell that began it."""

    async def fail() -> None:
        raise KeyError("mine")

    async def cell() -> None:
        complete(fail())

    with pytest.raises(KeyError, match="mine"):
        asyncio.run(cell())


def test_an_interrupted_notebook_leaves_nothing_at_work() -> None:
    """Ctrl-C in a notebook ends the work in its thread, after its cleaning up."""
    cell = subprocess.Popen([sys.executable, "-c", NOTEBOOK], stdout=subprocess.PIPE, text=True)
    assert cell.stdout is not None
    with cell:
        assert cell.stdout.readline() == "at work\n"
        cell.send_signal(signal.SIGINT)
        said = cell.stdout.read().splitlines()
    assert cell.returncode == 0
    assert sorted(said[:2]) == ["cleaned up", "stopping"]
    assert said[2:] == ["raised interrupted", "left [] True"]
