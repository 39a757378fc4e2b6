"""Rehearsed and real results of one name: only one of both has the name, the other is aside."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from paceline.store.files import storage_errors

_REAL = "real"
_REHEARSED = "rehearsed"


def move_aside(folder: Path, *, rehearsed: bool) -> Path:
    """Give results a name that tells what they are and since when they are aside; return it."""
    kind = _REHEARSED if rehearsed else _REAL
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
    with storage_errors(folder):
        target = next(path for path in _names(folder, kind, stamp) if not path.exists())
        return folder.rename(target)


def bring_back(folder: Path, *, holding: str) -> Path | None:
    """Let the real results that were moved aside last have their name again; return where from.

    They had to make way for a rehearsal, and what was measured of them is not measured twice.
    """
    with storage_errors(folder):
        aside = [
            path
            for path in folder.parent.iterdir()
            if path.name.startswith(f"{folder.name}.{_REAL}-") and (path / holding).is_file()
        ]
        if not aside:
            return None
        newest = max(aside, key=lambda path: path.name)
        newest.rename(folder)
        return newest


def _names(folder: Path, kind: str, stamp: str) -> Iterator[Path]:
    yield folder.with_name(f"{folder.name}.{kind}-{stamp}")
    for number in range(2, 1000):
        yield folder.with_name(f"{folder.name}.{kind}-{stamp}-{number}")
