"""The index finds folders and survives trouble."""

from __future__ import annotations

from pathlib import Path

import pytest

from paceline.errors import StorageError
from paceline.store.index import Index


def test_the_newest_comes_first(tmp_path: Path) -> None:
    """Folders are listed from the newest to the oldest."""
    index = Index(tmp_path / "index.sqlite")
    index.add("run", "a", tmp_path / "a", 1.0, None)
    index.add("run", "b", tmp_path / "b", 2.0, None)
    index.add("study", "c", tmp_path / "c", 3.0, None)
    assert index.all("run") == (tmp_path / "b", tmp_path / "a")


def test_adding_twice_is_the_same_as_once(tmp_path: Path) -> None:
    """A folder stands in the index once."""
    index = Index(tmp_path / "index.sqlite")
    index.add("run", "a", tmp_path / "a", 1.0, None)
    index.add("run", "a", tmp_path / "a", 1.0, None)
    assert index.named("run", "a") == (("a", tmp_path / "a"),)


def test_a_damaged_index_is_named(tmp_path: Path) -> None:
    """A file that is no database is an error with a way out, not a traceback of SQLite."""
    path = tmp_path / "index.sqlite"
    path.write_bytes(b"this is not a database, however long it may be" * 40)
    with pytest.raises(StorageError, match="cannot be used") as caught:
        Index(path).all("run")
    assert "move it away" in (caught.value.hint or "")
