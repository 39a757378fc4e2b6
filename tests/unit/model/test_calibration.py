"""Calibrations: kept as JSON and read back, also from a newer version."""

from __future__ import annotations

import json

from paceline.model.calibration import (
    AllReduceTime,
    Calibration,
    HostCalibration,
    LinkCalibration,
    from_plain,
    to_plain,
)

FOUND = Calibration(
    measured_at=1.5,
    hosts={"a": HostCalibration(threads=2, fp32_gflops_one=100.0), "b": HostCalibration(4)},
    links=(LinkCalibration("a", "b", 0.97, 0.2), LinkCalibration("b", "a", trouble="no answer")),
    all_reduce=(AllReduceTime(1 << 20, 2, 0.01),),
)


def test_what_was_kept_is_read_back() -> None:
    """Nothing is lost on the way through a file, and nothing that is missing becomes a number."""
    assert from_plain(json.loads(json.dumps(to_plain(FOUND)))) == FOUND


def test_a_newer_version_is_understood() -> None:
    """Fields that this version does not know are passed over."""
    plain = to_plain(FOUND)
    plain["hosts"]["a"]["int8_gops_one"] = 7.0
    assert from_plain({**plain, "weather": "fine"}) == FOUND
