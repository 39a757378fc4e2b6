"""What those see who watch a study."""

from __future__ import annotations

import io
import time
from pathlib import Path

import pytest
from rich.console import Console
from rich.live import Live

from paceline.cli import live
from paceline.model.live import RunNow
from paceline.model.plan import Configuration, PlannedSample, StudyPlan
from paceline.model.record import RunRecord, RunState

ONE = Configuration(1, 1)
PLAN = StudyPlan(
    name="scaling",
    baseline=ONE,
    configurations=(ONE,),
    samples=tuple(PlannedSample(f"s{index}", ONE, index) for index in range(1, 11)),
    digest="d",
    notes=("more processes than cores; they take turns",),
)
RECORD = RunRecord(
    run_id="s1-abc",
    kind="sample",
    state=RunState.RUNNING,
    configuration=ONE,
    folder=Path("/runs/s1-abc"),
    created_at=time.time(),
    sample_index=1,
)


class Board:
    """A board on a terminal that is a string, with a clock that is set by hand."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self._file = io.StringIO()
        console = Console(file=self._file, force_terminal=True, width=120, color_system=None)
        self._live = Live(console=console, auto_refresh=False)
        self._live.start()
        self.board = live.TerminalBoard(self._live, clock=lambda: self.now_s)

    def shown(self) -> str:
        """Return everything that was shown up to now."""
        self._live.refresh()
        return self._file.getvalue()

    def shown_now(self) -> str:
        """Return what is on the screen."""
        before = len(self.shown())
        return self.shown()[before:]

    def close(self) -> None:
        """Give the terminal back."""
        self._live.stop()


def test_the_board_shows_what_the_plan_has_to_say() -> None:
    """Notes of the plan, such as too many processes, stand above the bar."""
    made = Board()
    made.board.planned(PLAN, 10)
    shown = made.shown()
    made.close()
    assert "note: more processes than cores; they take turns" in shown
    assert "0/10 samples" in shown


def test_a_resumed_study_estimates_by_its_own_samples() -> None:
    """Samples that were taken earlier do not make the rest look quick."""
    made = Board()
    made.now_s += 50  # reaching the hosts is not a sample
    made.board.planned(PLAN, 2)
    made.board.started(RECORD)
    made.now_s += 60
    made.board.progressed(RECORD, RunNow("iteration 5/10", 0.5))
    shown = made.shown_now()
    made.close()
    # Half a sample took a minute: one and a half are still to come.
    assert "8/10 samples · about 3 min 00 s left" in shown


def test_the_board_says_when_a_run_is_taken_over() -> None:
    """What an earlier process left at work is named as that, and not as a sample of ours."""
    made = Board()
    made.board.started(RECORD)
    before = made.shown_now()
    made.board.planned(PLAN, 10)
    made.board.started(RECORD)
    after = made.shown_now()
    made.close()
    assert "taking over a run that is left from before: 1 node x 1 process, sample 1" in before
    assert "0/0" not in before
    assert "taking over" not in after


def test_plain_lines_say_when_a_run_is_taken_over(capsys: pytest.CaptureFixture[str]) -> None:
    """A log names the run that is waited for, and says nothing more of each start."""
    lines = live.PlainLines()
    lines.started(RECORD)
    assert capsys.readouterr().err == "taking over a run that is left from before: s1-abc\n"
    lines.planned(PLAN, 10)
    capsys.readouterr()
    lines.started(RECORD)
    assert capsys.readouterr().err == ""
