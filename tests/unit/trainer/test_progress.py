"""How a long preparation is shown."""

from __future__ import annotations

import io

import pytest

from paceline.trainer.progress import PreparationBar, bar

pytestmark = pytest.mark.torch


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        """Return True."""
        return True


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Lend a clock that stands still until its only number is changed."""
    now = [100.0]
    monkeypatch.setattr("paceline.trainer.progress.time.monotonic", lambda: now[0])
    return now


def test_a_terminal_gets_a_bar_that_ends_its_line(clock: list[float]) -> None:
    """One line is drawn over again, and left complete."""
    stream = Terminal()
    show = PreparationBar(stream)
    for done in (1, 25, 50):
        clock[0] += 1
        show("preparing images", done, 50)
    drawn = stream.getvalue().split("\r")[1:]
    assert [line.count("#") for line in drawn] == [0, 15, 30]
    assert "50% (25 of 50)" in drawn[1]
    assert [line.endswith("\n") for line in drawn] == [False, False, True]


def test_elsewhere_a_line_comes_now_and_then(clock: list[float]) -> None:
    """A log gets a plain line every two seconds and no control characters."""
    stream = io.StringIO()
    show = PreparationBar(stream)
    for done in range(1, 51):
        clock[0] += 0.1
        show("preparing images", done, 50)
    lines = stream.getvalue().splitlines()
    assert lines == [f"paceline: preparing images {share}%" for share in (42, 84)]


@pytest.mark.usefixtures("clock")
def test_what_takes_no_time_is_not_shown() -> None:
    """A set that is ready within a moment leaves no trace on the terminal."""
    stream = Terminal()
    show = PreparationBar(stream)
    for done in (1, 50):
        show("preparing images", done, 50)
    assert stream.getvalue() == ""


def test_an_unknown_total_is_counted() -> None:
    """Without a total there is no share to show."""
    assert bar("reading", 1234, 0) == "reading: 1,234"
