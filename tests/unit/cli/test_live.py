"""What those see who watch a study."""

from __future__ import annotations

import io
import re
import time
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console
from rich.live import Live

from paceline.cli import live
from paceline.model.live import RankNow, RunNow
from paceline.model.plan import Configuration, PlannedSample, StudyPlan
from paceline.model.record import RunRecord, RunState
from paceline.model.summary import StudyProgress
from paceline.reporting.document import loads

EXAMPLE = Path(__file__).parents[2] / "data" / "synthetic-study.json"

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

    def __init__(self, width: int = 120, *, looking_on: bool = False) -> None:
        self.now_s = 100.0
        self._file = io.StringIO()
        console = Console(file=self._file, force_terminal=True, width=width, color_system=None)
        self._live = Live(console=console, auto_refresh=False)
        self._live.start()
        self.board = live.TerminalBoard(self._live, clock=lambda: self.now_s, looking_on=looking_on)

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


@pytest.mark.parametrize("width", [80, 120])
def test_the_board_fits_the_terminal(width: int) -> None:
    """Ranks and table keep to the width, and the table keeps its speedup."""
    made = Board(width)
    made.board.planned(PLAN, 10)
    summary = loads(EXAMPLE.read_text())
    made.board.sampled(summary.configurations[0].samples[0], StudyProgress(summary, 3, 10, 60.0))
    ranks = tuple(RankNow(rank, "a-host", 5, 10, 0.1, 160.0, 0.1, 0.01) for rank in (0, 1))
    made.board.progressed(RECORD, RunNow("iteration 5/10", 0.5, ranks, 320.0, "img"))
    screen = [re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", line) for line in made.shown_now().split("\n")]
    made.close()
    assert max(len(line.rstrip("\r")) for line in screen) <= width
    text = "\n".join(screen)
    assert "3/10 samples · about 1 min 00 s left" in text
    assert "iteration 5/10 · 320 img/s · waiting 10%" in text
    assert "speedup" in text
    assert ("ms/iteration" in text) == (width == 120)


def test_who_looks_on_sees_a_run_and_no_taking_over() -> None:
    """From another terminal, a run that goes on is just that."""
    made = Board(looking_on=True)
    made.board.started(replace(RECORD, sample_index=None))
    shown = made.shown_now()
    made.close()
    assert "s1-abc: starting" in shown
    assert "taking over" not in shown


def test_plain_lines_tell_a_run_now_and_then() -> None:
    """For a pipe, a line every so many seconds and not one for each iteration."""
    said: list[str] = []
    now = [0.0]
    lines = live.PlainLines(say=said.append, run_every_s=10.0, clock=lambda: now[0])
    for second in range(25):
        now[0] = float(second)
        lines.progressed(RECORD, RunNow(f"iteration {second}", None))
    assert said == [f"1 node x 1 process, sample 1: iteration {second}" for second in (0, 10, 20)]
