"""The lock between the processes of a host."""

from __future__ import annotations

import errno
import fcntl
import threading
from pathlib import Path

import pytest

from paceline.datasets.locks import exclusive


def test_the_second_waits_for_the_first_and_says_so(tmp_path: Path) -> None:
    """Only one is inside at a time, and the one that waits tells its user."""
    said: list[str] = []
    waiting, entered = threading.Event(), threading.Event()

    def tell(what: str, _done: int, _total: int) -> None:
        said.append(what)
        waiting.set()

    def second() -> None:
        with exclusive(tmp_path / "lock", tell):
            entered.set()

    thread = threading.Thread(target=second)
    with exclusive(tmp_path / "lock") as alone:
        thread.start()
        assert waiting.wait(30)
        assert alone
        assert not entered.is_set()
    thread.join(30)
    assert entered.is_set()
    assert said == ["waiting for another process"]


def test_the_lock_is_let_go_after_an_error(tmp_path: Path) -> None:
    """A failure inside does not keep the others out."""
    with pytest.raises(RuntimeError), exclusive(tmp_path / "lock"):
        raise RuntimeError
    with exclusive(tmp_path / "lock") as alone:
        assert alone


def test_a_file_system_without_locks_is_worked_on_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The holder is told that it may not be alone, so that it removes nothing of others."""

    def refuse(_descriptor: int, _operation: int) -> None:
        raise OSError(errno.ENOLCK, "no locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with exclusive(tmp_path / "lock") as alone:
        assert not alone
