"""Atomic files and what a file system's complaints become."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from paceline.errors import StorageError
from paceline.store.files import storage_errors, write_atomically


def test_a_failed_write_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When the disk fills up, the old content stays and no temporary file is left."""
    path = tmp_path / "study.json"
    write_atomically(path, b"old")

    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageError, match="the disk is full") as caught:
        write_atomically(path, b"new")
    assert caught.value.hint
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_refusal_is_said_with_its_path(tmp_path: Path) -> None:
    """Other troubles name the path and the system's own reason."""
    blocked = tmp_path / "file" / "inside"
    (tmp_path / "file").write_text("a file where a folder should be")
    with pytest.raises(StorageError, match=r"Not a directory|File exists"):
        write_atomically(blocked, b"x")


def test_errors_of_other_kinds_pass(tmp_path: Path) -> None:
    """Only what the file system says is translated."""
    with pytest.raises(ZeroDivisionError), storage_errors(tmp_path):
        _ = 1 / 0
