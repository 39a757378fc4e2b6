from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.supervised import SupervisedJob
from tests.fakes.terminal import Terminal


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
