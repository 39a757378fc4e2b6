"""Checkpoint files."""

from __future__ import annotations

import errno
import hashlib
import os
from pathlib import Path
from typing import Any

import pytest
import torch

from paceline.errors import DataError
from paceline.trainer import checkpoint
from paceline.trainer.checkpoint import Folder, load, read_whole, sum_path

pytestmark = pytest.mark.torch


def _state(number: int) -> dict[str, Any]:
    return {"number": number, "weights": torch.full((1000,), float(number))}


def _numbers(folder: Folder) -> list[int]:
    return sorted(int(path.stem.split("-")[1]) for path in folder.path.glob("*.pt"))


def test_the_newest_is_read_back(tmp_path: Path) -> None:
    """What was written last comes back, value by value."""
    folder = Folder(tmp_path / "checkpoints")
    assert folder.newest() is None
    for number in (1, 2):
        folder.write(_state(number), keep=3)
    found = folder.newest()
    assert found is not None
    state = load(found.data)
    assert state["number"] == 2
    assert torch.equal(state["weights"], torch.full((1000,), 2.0))
    assert found.passed_over == ()


def test_only_the_last_few_are_kept(tmp_path: Path) -> None:
    """Older files go, with their sums."""
    folder = Folder(tmp_path)
    for number in range(5):
        folder.write(_state(number), keep=2)
    assert _numbers(folder) == [4, 5]
    assert len(list(tmp_path.iterdir())) == 4


def test_the_sum_is_what_sha256sum_reads(tmp_path: Path) -> None:
    """The file beside a checkpoint names it and its SHA-256."""
    path, size_bytes = Folder(tmp_path).write(_state(1), keep=1)
    data = path.read_bytes()
    assert len(data) == size_bytes
    assert sum_path(path).read_text() == f"{hashlib.sha256(data).hexdigest()}  {path.name}\n"


def _cut(path: Path) -> None:
    os.truncate(path, 500)


def _flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[700] ^= 1
    path.write_bytes(data)


def _lose_sum(path: Path) -> None:
    sum_path(path).unlink()


@pytest.mark.parametrize("damage", [_cut, _flip, _lose_sum])
def test_a_damaged_file_is_passed_over_and_said(tmp_path: Path, damage: Any) -> None:
    """The one before it is used, and the reader learns of the damage."""
    folder = Folder(tmp_path)
    folder.write(_state(1), keep=3)
    newest, _ = folder.write(_state(2), keep=3)
    damage(newest)
    found = folder.newest()
    assert found is not None
    assert load(found.data)["number"] == 1
    assert len(found.passed_over) == 1
    assert newest.name in found.passed_over[0]


def test_nothing_but_damage_is_an_error(tmp_path: Path) -> None:
    """Where no whole checkpoint is left, training does not silently begin anew."""
    folder = Folder(tmp_path)
    _cut(folder.write(_state(1), keep=3)[0])
    with pytest.raises(DataError, match="damaged or cut short"):
        folder.newest()


def test_a_full_disk_leaves_the_one_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error is the disk's own, nothing half-written stays, and the old file is whole."""
    folder = Folder(tmp_path)
    kept, _ = folder.write(_state(1), keep=3)
    before = sorted(tmp_path.iterdir())

    class Full(checkpoint._Summing):
        def write(self, data: Any) -> int:
            """Take a little, then no more."""
            if self.size_bytes > 100:
                self.error = OSError(errno.ENOSPC, "No space left on device")
                raise self.error
            return super().write(data)

    monkeypatch.setattr(checkpoint, "_Summing", Full)
    with pytest.raises(OSError, match="No space left"):
        folder.write(_state(2), keep=3)
    assert sorted(tmp_path.iterdir()) == before
    found = folder.newest()
    assert found is not None
    assert found.path == kept


def test_an_older_trainings_files_are_not_taken_for_ones_own(tmp_path: Path) -> None:
    """After a new beginning, what lay there is neither resumed nor overwritten."""
    folder = Folder(tmp_path)
    for number in (1, 2):
        folder.write(_state(number), keep=9)
    folder.begin()
    assert folder.newest() is None
    folder.write(_state(3), keep=9)
    found = folder.newest()
    assert found is not None
    assert load(found.data)["number"] == 3
    assert _numbers(folder) == [1, 2, 3]


def test_nothing_in_a_file_is_executed(tmp_path: Path) -> None:
    """A checkpoint that carries code is refused."""
    path = tmp_path / "evil.pt"
    torch.save({"weights": torch.zeros(1), "evil": _Evil()}, path)
    with pytest.raises(DataError, match="more than names and numbers"):
        load(path.read_bytes())
    assert not (tmp_path / "was here").exists()


class _Evil:
    def __reduce__(self) -> tuple[Any, ...]:
        return (os.mkdir, ("was here",))


def test_an_unreadable_file_is_named(tmp_path: Path) -> None:
    """The error says which file it was."""
    with pytest.raises(DataError, match="absent"):
        read_whole(tmp_path / "absent.pt")


def test_a_checkpoint_that_is_not_there_is_said(tmp_path: Path) -> None:
    """The path that was asked for is named, not a file beside it."""
    with pytest.raises(DataError, match=r"no checkpoint .*x\.pt$"):
        checkpoint.read_whole(tmp_path / "x.pt")
