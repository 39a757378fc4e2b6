"""The keys of our clusters: one folder each, files that only their owner can read."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from paceline.model.command import Secret
from paceline.model.ec2 import ClusterKey
from paceline.planning.ec2.identity import resource_name
from paceline.ports import HostPin, KeyPair
from paceline.store.files import storage_errors

_PINS = "pins"
MakeKey = Callable[[], KeyPair]


class FileKeyring:
    """The port `Keyring`, as files below one folder; `make` makes a new key."""

    def __init__(self, folder: Path, make: MakeKey) -> None:
        self._folder = folder
        self._make = make

    def pair(self, key: ClusterKey, name: str) -> KeyPair:
        """Return a key of a cluster; it is made when it is first asked for."""
        path = self.path(key, name)
        with storage_errors(path):
            if not self.known(key, name):
                self._keep(path, self._make())
            private = path.read_text(encoding="ascii")
            return KeyPair(Secret(private), _public(path).read_text(encoding="ascii").strip())

    def path(self, key: ClusterKey, name: str) -> Path:
        """Return where the private half lies, or would lie."""
        return self._of(key) / name

    def known(self, key: ClusterKey, name: str) -> bool:
        """Tell whether a cluster has this key here."""
        path = self.path(key, name)
        return path.is_file() and _public(path).is_file()

    def pins(self, key: ClusterKey) -> Mapping[str, HostPin]:
        """Return the host keys that are known of a cluster's hosts, by instance id."""
        folder = self._of(key) / _PINS
        with storage_errors(folder):
            if not folder.is_dir():
                return {}
            return {path.name: _pin(path) for path in folder.glob("i-*")}

    def write_pin(self, key: ClusterKey, instance_id: str, pin: HostPin) -> None:
        """Write down what is known of one host's key, over what is there."""
        path = self._of(key) / _PINS / instance_id
        with storage_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            _write(path, json.dumps(vars(pin)))

    def forget(self, key: ClusterKey) -> None:
        """Remove a cluster's keys; having none is no error."""
        folder = self._of(key)
        with storage_errors(folder):
            if folder.is_dir():
                shutil.rmtree(folder)

    def _of(self, key: ClusterKey) -> Path:
        return self._folder / f"{resource_name(key)}-{key.region}"

    def _keep(self, path: Path, pair: KeyPair) -> None:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.parent.chmod(0o700)
        # The private half comes last: where both are, both are whole and belong together.
        path.unlink(missing_ok=True)
        _write(_public(path), f"{pair.public}\n")
        _write(path, pair.private.value)


def _pin(path: Path) -> HostPin:
    return HostPin(**json.loads(path.read_text(encoding="ascii")))


def _public(path: Path) -> Path:
    return path.with_name(f"{path.name}.pub")


def _write(path: Path, text: str) -> None:
    """Replace a file by one that nobody else could read at any moment."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
