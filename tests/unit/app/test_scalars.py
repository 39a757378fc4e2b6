"""TensorBoard's files of a run, as it goes on and when it is followed a second time."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from paceline.app.jobs import FileChunk
from paceline.app.scalars import ScalarFiles
from paceline.errors import StorageError
from tests.unit.reporting.test_tensorboard import records, values_of


def chunk(rank: int, *indices: int) -> FileChunk:
    """Return what a rank reports of these iterations."""
    lines = [
        json.dumps(
            {"kind": "iteration", "rank": rank, "t": 5.0, "index": index, "seconds": 0.5,
             "metrics": {"loss": float(index)}}
        )
        for index in indices
    ]  # fmt: skip
    return FileChunk(f"events/rank-{rank}.jsonl", 0, "\n".join(lines) + "\nnot an event\n")


def told(folder: Path, rank: int) -> list[tuple[int, float]]:
    """Return step and loss of all that a rank's file holds."""
    (path,) = (folder / "tensorboard" / f"rank-{rank}").iterdir()
    assert "tfevents" in path.name
    found = [values_of(record) for record in list(records(path.read_bytes()))[1:]]
    return [(step, values["loss"]) for _, step, values in found]


def test_files_grow_with_the_run_and_ranks_have_their_own(tmp_path: Path) -> None:
    """Chunks are appended as they come; logs are passed over."""
    files = ScalarFiles(tmp_path)
    files.feed(chunk(0, 0, 1))
    assert told(tmp_path, 0) == [(0, 0.0), (1, 1.0)]
    files.feed(FileChunk("logs/rank-0.log", 0, "hello\n"))
    files.feed(chunk(1, 0))
    files.feed(chunk(0, 2))
    assert told(tmp_path, 0) == [(0, 0.0), (1, 1.0), (2, 2.0)]
    assert told(tmp_path, 1) == [(0, 0.0)]


def test_a_run_that_is_followed_again_is_written_once(tmp_path: Path) -> None:
    """Who takes a run over hears all of it again, and nothing stands there twice."""
    ScalarFiles(tmp_path).feed(chunk(0, 0, 1, 2))
    ScalarFiles(tmp_path).feed(chunk(0, 0, 1))
    assert told(tmp_path, 0) == [(0, 0.0), (1, 1.0)]


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """The run is not disturbed; afterwards the error says which file."""
    (tmp_path / "tensorboard").write_text("in the way")
    files = ScalarFiles(tmp_path)
    files.feed(chunk(0, 0))
    files.feed(chunk(1, 0))
    with pytest.raises(StorageError, match="rank-0"):
        files.settle()
