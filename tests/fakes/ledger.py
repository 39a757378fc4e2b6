"""A ledger and a keyring in memory, for tests that need no files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from paceline.errors import Conflict
from paceline.model.command import Secret
from paceline.model.ec2 import ClusterKey
from paceline.model.ledger import ClusterEntry, Entry
from paceline.ports import HostPin, KeyPair


class FakeLedger:
    """The port `Ledger`, in memory."""

    def __init__(self) -> None:
        self._clusters: dict[ClusterKey, ClusterEntry] = {}
        self._entries: dict[str, Entry] = {}
        self._locked: set[ClusterKey] = set()

    @contextmanager
    def lock(self, key: ClusterKey) -> Iterator[None]:
        """Keep others out while inside."""
        if key in self._locked:
            raise Conflict(f"somebody is at work on {key}")
        self._locked.add(key)
        try:
            yield
        finally:
            self._locked.discard(key)

    def clusters(self) -> tuple[ClusterEntry, ...]:
        """Return the clusters that are not gone, newest first."""
        there = [entry for entry in self._clusters.values() if not entry.gone]
        return tuple(sorted(there, key=lambda entry: -entry.created_at))

    def cluster(self, key: ClusterKey) -> ClusterEntry | None:
        """Return a cluster that is not gone."""
        entry = self._clusters.get(key)
        return None if entry is None or entry.gone else entry

    def write_cluster(self, entry: ClusterEntry) -> None:
        """Write a cluster down."""
        self._clusters[entry.key] = entry

    def entries(self, key: ClusterKey) -> tuple[Entry, ...]:
        """Return what was written down for a cluster."""
        return tuple(entry for entry in self._entries.values() if entry.key == key)

    def write(self, *entries: Entry) -> None:
        """Write entries down."""
        self._entries |= {entry.id: entry for entry in entries}


class FakeKeyring:
    """The port `Keyring`, with words in place of keys."""

    def __init__(self) -> None:
        self._pairs: dict[tuple[ClusterKey, str], KeyPair] = {}
        self._pins: dict[ClusterKey, dict[str, HostPin]] = {}

    def pair(self, key: ClusterKey, name: str) -> KeyPair:
        """Return a key; it is made when it is first asked for."""
        made = KeyPair(
            Secret(f"private {name} {len(self._pairs)}"), f"ssh-ed25519 {len(self._pairs)}"
        )
        return self._pairs.setdefault((key, name), made)

    def path(self, key: ClusterKey, name: str) -> Path:
        """Return where it would lie."""
        return Path("/nowhere") / key.name / name

    def known(self, key: ClusterKey, name: str) -> bool:
        """Tell whether it is here."""
        return (key, name) in self._pairs

    def pins(self, key: ClusterKey) -> Mapping[str, HostPin]:
        """Return the host keys that are known."""
        return dict(self._pins.get(key, {}))

    def write_pin(self, key: ClusterKey, instance_id: str, pin: HostPin) -> None:
        """Write a host key down."""
        self._pins.setdefault(key, {})[instance_id] = pin

    def forget(self, key: ClusterKey) -> None:
        """Remove a cluster's keys."""
        self._pins.pop(key, None)
        for known in [one for one in self._pairs if one[0] == key]:
            del self._pairs[known]
