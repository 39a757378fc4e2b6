"""Writing in the background."""

from __future__ import annotations

import threading
from contextlib import closing
from pathlib import Path

import pytest

from paceline.trainer.scribe import Scribe, write_whole


def test_tasks_are_done_in_order_and_before_the_end() -> None:
    """Nothing is lost when the scribe is closed, and the caller's thread does none of it."""
    done: list[tuple[int, str]] = []
    with closing(Scribe(pytest.fail)) as scribe:
        for number in range(20):
            scribe.do(lambda n=number: done.append((n, threading.current_thread().name)))  # type: ignore[misc]
    assert done == [(number, "scribe") for number in range(20)]


def test_a_failed_task_is_said_and_the_next_is_done() -> None:
    """An error goes to whoever listens; the work goes on."""
    said: list[str] = []
    done: list[int] = []
    with closing(Scribe(said.append)) as scribe:
        scribe.do(lambda: done.append(1 // 0))
        scribe.do(lambda: done.append(2))
    assert said == ["ZeroDivisionError: integer division or modulo by zero"]
    assert done == [2]


def test_a_file_is_whole_or_not_there(tmp_path: Path) -> None:
    """An existing file is replaced at once; a failure leaves it and nothing else."""
    path = tmp_path / "picture.png"
    write_whole(path, b"old")
    write_whole(path, b"new")
    assert path.read_bytes() == b"new"
    with pytest.raises(TypeError):
        write_whole(path, "no bytes")  # type: ignore[arg-type]
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]
