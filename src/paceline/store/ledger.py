"""The ledger: a small SQLite file that says what we rent, written before and after each call.

What is lost with it can be found again by tags; so a damaged file is put aside, not mourned.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO, cast

from paceline.errors import Conflict, StorageError
from paceline.model.ec2 import ClusterKey, Kind
from paceline.model.ledger import ClusterEntry, Entry, EntryState
from paceline.planning.ec2.identity import resource_name
from paceline.store.files import storage_errors

_VERSION = 1
_SCHEMA = """
CREATE TABLE IF NOT EXISTS cluster (
    name TEXT NOT NULL, owner TEXT NOT NULL, region TEXT NOT NULL,
    created_at REAL NOT NULL, gone_at REAL, data TEXT NOT NULL,
    PRIMARY KEY (name, owner, region)
);
CREATE TABLE IF NOT EXISTS entry (
    number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL, owner TEXT NOT NULL, region TEXT NOT NULL, data TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS entry_by_cluster ON entry (name, owner, region);
PRAGMA user_version = 1;
"""
_DAMAGED = ("not a database", "malformed")


class SqliteLedger:
    """The port `Ledger`, as one file; several processes may use it at once."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @contextmanager
    def lock(self, key: ClusterKey) -> Iterator[None]:
        """Keep others from a cluster while inside; Conflict if one is at work on it."""
        path = self._path.parent / "locks" / f"{resource_name(key)}-{key.region}"
        with storage_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
            file = os.fdopen(descriptor, "r+", encoding="ascii")
        with file:
            _take(file, key)
            file.seek(0)
            file.truncate(0)
            file.write(str(os.getpid()))
            file.flush()
            yield

    def clusters(self) -> tuple[ClusterEntry, ...]:
        """Return the clusters that are not gone, newest first."""
        with self._open() as database:
            rows = database.execute(
                "SELECT name, owner, region, data FROM cluster WHERE gone_at IS NULL "
                "ORDER BY created_at DESC, rowid DESC"
            ).fetchall()
        return tuple(_cluster(row) for row in rows)

    def cluster(self, key: ClusterKey) -> ClusterEntry | None:
        """Return a cluster that is not gone; None if there is none of that key."""
        with self._open() as database:
            row = database.execute(
                "SELECT name, owner, region, data FROM cluster "
                "WHERE name = ? AND owner = ? AND region = ? AND gone_at IS NULL",
                _words(key),
            ).fetchone()
        return None if row is None else _cluster(row)

    def write_cluster(self, entry: ClusterEntry) -> None:
        """Write a cluster down, over what is there of it."""
        data = {name: value for name, value in vars(entry).items() if name != "key"}
        with self._open() as database:
            database.execute(
                "INSERT OR REPLACE INTO cluster VALUES (?, ?, ?, ?, ?, ?)",
                (*_words(entry.key), entry.created_at, entry.gone_at, json.dumps(data)),
            )

    def entries(self, key: ClusterKey) -> tuple[Entry, ...]:
        """Return what was written down for a cluster, the first first."""
        with self._open() as database:
            rows = database.execute(
                "SELECT data FROM entry WHERE name = ? AND owner = ? AND region = ? "
                "ORDER BY number",
                _words(key),
            ).fetchall()
        return tuple(_entry(key, json.loads(data)) for (data,) in rows)

    def write(self, *entries: Entry) -> None:
        """Write entries down, each over that of the same id: all of them or none."""
        with self._open() as database:
            database.executemany(
                "INSERT INTO entry (id, name, owner, region, data) VALUES (?, ?, ?, ?, ?) "
                "ON CONFLICT (id) DO UPDATE SET data = excluded.data",
                [(entry.id, *_words(entry.key), _text(entry)) for entry in entries],
            )

    # --- the file ---------------------------------------------------------------------------------

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        try:
            with self._connected() as database:
                yield database
        except sqlite3.Error as error:
            raise StorageError(
                f"the ledger {self._path} cannot be used: {error}",
                hint="make its folder writable, or free some space; what you rent is not lost: "
                "`paceline reap` finds it by its tags",
            ) from error

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        database = self._ready()
        try:
            with database:
                yield database
        finally:
            database.close()

    def _ready(self) -> sqlite3.Connection:
        try:
            return self._prepared()
        except sqlite3.DatabaseError as error:
            if not any(word in str(error) for word in _DAMAGED):
                raise
            self._put_aside()
            return self._prepared()

    def _prepared(self) -> sqlite3.Connection:
        with storage_errors(self._path):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            # Made by us, so that nobody else can read it at any moment.
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600))
        database = sqlite3.connect(self._path, timeout=30.0)
        try:
            if database.execute("PRAGMA user_version").fetchone() != (_VERSION,):
                database.execute("PRAGMA journal_mode = WAL")
                database.executescript(_SCHEMA)
            # What is meant must be on the disk before the call goes out.
            database.execute("PRAGMA synchronous = FULL")
            _require_whole(database)
        except BaseException:
            database.close()
            raise
        return database

    def _put_aside(self) -> None:
        """Keep a damaged ledger for whoever wants to look at it, and begin anew."""
        aside = self._path.with_name(f"{self._path.name}.damaged-{int(time.time())}")
        with storage_errors(self._path):
            self._path.replace(aside)
            for ending in ("-wal", "-shm"):
                with contextlib.suppress(FileNotFoundError):
                    self._path.with_name(self._path.name + ending).unlink()


def _require_whole(database: sqlite3.Connection) -> None:
    if database.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
        raise sqlite3.DatabaseError("the file is malformed")


def _take(file: TextIO, key: ClusterKey) -> None:
    try:
        # The kernel lets go of the lock when its holder dies, however it dies.
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        file.seek(0)
        holder = file.read().strip()
        who = f" (process {holder})" if holder else ""
        raise Conflict(
            f"another paceline{who} is at work on the cluster {key}",
            hint="wait until it has finished, or stop it with Ctrl-C, which cleans up",
        ) from error


def _words(key: ClusterKey) -> tuple[str, str, str]:
    return (key.name, key.owner, key.region)


def _cluster(row: tuple[str, str, str, str]) -> ClusterEntry:
    name, owner, region, data = row
    return ClusterEntry(key=ClusterKey(name, owner, region), **json.loads(data))


def _text(entry: Entry) -> str:
    data = {name: value for name, value in vars(entry).items() if name != "key"}
    return json.dumps({**data, "state": entry.state.value})


def _entry(key: ClusterKey, data: Mapping[str, Any]) -> Entry:
    words = dict(data)
    kind = cast("Kind", words.pop("kind"))
    return Entry(key=key, kind=kind, state=EntryState(words.pop("state")), **words)
