"""The note beside fetched data."""

from __future__ import annotations

from pathlib import Path

import pytest

from paceline.datasets import manifest
from paceline.datasets.catalogue import DataFile
from paceline.datasets.manifest import Manifest

NOTE = Manifest("cifar10", "a host", (DataFile("a", 1, "00"),), {"train": "11"})


def test_a_note_is_read_as_it_was_written(tmp_path: Path) -> None:
    """Nothing is lost, and no draft stays."""
    manifest.write(tmp_path, NOTE)
    assert manifest.read(tmp_path) == NOTE
    assert manifest.digest_of(tmp_path, "train") == "11"
    assert manifest.digest_of(tmp_path, "test") is None
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["paceline-data.json"]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"files": [{"a": 1}]}', '{"files": [], "x": 1}'])
def test_a_note_that_makes_no_sense_is_no_note(tmp_path: Path, text: str) -> None:
    """The data is then judged by itself."""
    (tmp_path / manifest.NAME).write_text(text)
    assert manifest.read(tmp_path) is None
    assert manifest.digest_of(tmp_path, "train") is None
