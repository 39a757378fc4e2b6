"""What a rehearsal has made on this machine: written down before it is made, struck off after.

It is all that `stop` needs, also after the daemon was killed: a line per event, synced to disk.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Item:
    """One thing on this machine: what kind of thing, and its name among its kind."""

    kind: str
    name: str


class Journal:
    """The record of a rehearsal. Safe to use from several threads."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()

    def add(self, items: Iterable[Item]) -> None:
        """Write down what is about to be made."""
        self._append("made", items)

    def strike(self, items: Iterable[Item]) -> None:
        """Write down what is gone."""
        self._append("gone", items)

    def _append(self, what: str, items: Iterable[Item]) -> None:
        lines = "".join(
            json.dumps({"what": what, "kind": item.kind, "name": item.name}) + "\n"
            for item in items
        )
        with self._lock, self.path.open("a+b") as file:
            # Whoever wrote before us may have been killed in the middle of a line.
            size = file.seek(0, os.SEEK_END)
            if size and os.pread(file.fileno(), 1, size - 1) != b"\n":
                file.write(b"\n")
            file.write(lines.encode())
            file.flush()
            os.fsync(file.fileno())

    def held(self) -> tuple[Item, ...]:
        """Return what may be there now, in the order in which it was made."""
        found: dict[Item, None] = {}
        for what, item in self._entries():
            if what == "made":
                found[item] = None
            else:
                found.pop(item, None)
        return tuple(found)

    def all(self) -> tuple[Item, ...]:
        """Return everything that was ever made."""
        return tuple(dict.fromkeys(item for what, item in self._entries() if what == "made"))

    def _entries(self) -> Iterator[tuple[str, Item]]:
        if not self.path.exists():
            return
        for line in self.path.read_text(encoding="utf-8").splitlines():
            try:
                entry = json.loads(line)
            except ValueError:
                continue  # the last line, cut short when its writer was killed: nothing was made
            yield entry["what"], Item(entry["kind"], entry["name"])
