"""The state folder of a rehearsal, and what lies in it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Folder:
    """A folder that belongs to one rehearsal at a time."""

    path: Path

    @property
    def card(self) -> Path:
        """Where the daemon says how it is reached."""
        return self.path / "rehearsal.json"

    @property
    def log(self) -> Path:
        """What the daemon has to say."""
        return self.path / "daemon.log"

    @property
    def journal(self) -> Path:
        """What was made on this machine."""
        return self.path / "journal.jsonl"

    @property
    def control(self) -> Path:
        """The socket on which the daemon answers."""
        return self.path / "control.sock"

    @property
    def lock(self) -> Path:
        """Held by whoever starts or stops."""
        return self.path / "lock"

    @property
    def home(self) -> Path:
        """The state of the verbs that are said with `--rehearse`: their ledger, keys, index."""
        return self.path / "home"
