from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.supervised import SupervisedJob
from tests.fakes.terminal import Terminal
from tests.rehearsing import skip_unless_possible


@pytest.fixture
def job(tmp_path: Path) -> Iterator[SupervisedJob]:
    """Return a job that is cleared up after the test."""
    made = SupervisedJob(tmp_path / "job")
    yield made
    if made.path.exists():
        made.clear_up()


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    """Return a terminal of its own, and make sure that nothing of it is left."""
    made = Terminal(tmp_path / "at work")
    yield made
    assert made.clear_up() == [], "the test has left processes behind"


@pytest.fixture
def rehearsed(terminal: Terminal) -> Iterator[Terminal]:
    """Return a terminal whose EC2 is on this machine, and make sure that nothing of it is left."""
    skip_unless_possible()
    begun = terminal.paceline("rehearsal", "start")
    assert begun.returncode == 0, begun.stderr
    yield terminal
    ended = terminal.paceline("rehearsal", "stop")
    assert ended.returncode == 0, ended.stdout + ended.stderr
