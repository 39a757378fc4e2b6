"""Words and numbers for people."""

from __future__ import annotations

import json

import pytest

from paceline.cli import show
from paceline.model.plan import Configuration
from paceline.model.record import RunState


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (None, ""),
        (0.04, "0.0 s"),
        (9.96, "10.0 s"),
        (59.4, "59 s"),
        (60, "1 min 00 s"),
        (3599.7, "1 h 00 min"),
        (7500, "2 h 05 min"),
    ],
)
def test_durations_read_well(seconds: float | None, words: str) -> None:
    """Durations have the unit that a person would choose."""
    assert show.duration(seconds) == words


def test_nouns_become_json() -> None:
    """Dataclasses, enums and tuples become plain JSON data."""
    plain = show.plain({"c": Configuration(1, 2), "s": RunState.LOST, "t": (1, None)})
    assert json.loads(json.dumps(plain)) == {
        "c": {"nodes": 1, "procs_per_node": 2, "batch_size": None, "args": []},
        "s": "lost",
        "t": [1, None],
    }


def test_columns_are_aligned_without_trailing_space() -> None:
    """Tables are aligned, and their lines end where their text does."""
    assert show.columns([("A", "LONG"), ("value", "x")]) == "A      LONG\nvalue  x"
