"""The index: a small SQLite file that tells in which folder a run or a study lies.

The folders hold the truth; the index only finds them from any working directory. Rows whose
folder is gone are passed over.
"""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from paceline.errors import StorageError

_SCHEMA = """
CREATE TABLE IF NOT EXISTS folder (
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    path TEXT NOT NULL,
    created_at REAL NOT NULL,
    study_path TEXT,
    PRIMARY KEY (kind, path)
);
CREATE INDEX IF NOT EXISTS folder_by_name ON folder (kind, name);
PRAGMA user_version = 1;
"""
_VERSION = 1
_LITTLE_BYTES = 256 * 1024


class Index:
    """Where runs and studies lie, newest first."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def add(self, kind: str, name: str, path: Path, created_at: float, study: Path | None) -> None:
        """Remember a folder; a folder that is known already is replaced."""
        with self._open() as database:
            database.execute(
                "INSERT OR REPLACE INTO folder VALUES (?, ?, ?, ?, ?)",
                (kind, name, str(path), created_at, str(study) if study else None),
            )

    def named(self, kind: str, beginning: str) -> tuple[tuple[str, Path], ...]:
        """Return the names that begin with `beginning` and their folders, newest first."""
        pattern = beginning.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_") + "%"
        with self._open() as database:
            rows = database.execute(
                "SELECT name, path FROM folder WHERE kind = ? AND name LIKE ? ESCAPE '\\' "
                "ORDER BY created_at DESC, rowid DESC",
                (kind, pattern),
            ).fetchall()
        return tuple((name, Path(path)) for name, path in rows)

    def all(self, kind: str) -> tuple[Path, ...]:
        """Return all folders of a kind, newest first."""
        return tuple(path for _, path in self.named(kind, ""))

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            database = sqlite3.connect(self._path, timeout=10.0)
        except (sqlite3.Error, OSError) as error:
            raise self._unusable(error) from error
        try:
            if database.execute("PRAGMA user_version").fetchone() != (_VERSION,):
                # Only once: a look at the index must work on a full disk.
                database.execute("PRAGMA journal_mode = WAL")
                database.executescript(_SCHEMA)
            with database:
                yield database
        except sqlite3.Error as error:
            raise self._unusable(error) from error
        finally:
            database.close()

    def _unusable(self, error: Exception) -> StorageError:
        with contextlib.suppress(OSError):
            if shutil.disk_usage(self._path.parent).free < _LITTLE_BYTES:
                return StorageError(
                    f"the disk is full: the index {self._path} cannot be written",
                    hint="free some space and run the same command again",
                )
        return StorageError(
            f"the index {self._path} cannot be used: {error}",
            hint="make its folder writable or set PACELINE_HOME to one that is; "
            "if the file is damaged, move it away (results are kept in their own folders)",
        )
