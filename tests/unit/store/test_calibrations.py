"""Calibrations kept in a folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from paceline.model.calibration import Calibration, HostCalibration
from paceline.store.calibrations import CalibrationFiles

FOUND = Calibration(7.0, {"a": HostCalibration(threads=2, memory_gb_per_s_one=9.5)})


def test_what_was_kept_is_known(tmp_path: Path) -> None:
    """What was measured is found again under its key, and under no other."""
    files = CalibrationFiles(tmp_path / "calibrations")
    files.keep("ab12", FOUND)
    assert (files.known("ab12"), files.known("other")) == (FOUND, None)


@pytest.mark.parametrize("text", ["", "[]", '{"measured_at": 1}', "{"])
def test_a_damaged_file_is_nothing(tmp_path: Path, text: str) -> None:
    """A file that cannot be understood is measured again, and is no reason to fail."""
    (tmp_path / "ab12.json").write_text(text)
    assert CalibrationFiles(tmp_path).known("ab12") is None
