"""Which host keys are trusted: pinned ones, known ones, and new ones that somebody accepts.

Our own known hosts are kept in a file of ours; the user's are only read.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

import asyncssh

from paceline.errors import StorageError, TransportError

USER_FILES = (
    Path("~/.ssh/known_hosts"),
    Path("~/.ssh/known_hosts2"),
    Path("/etc/ssh/ssh_known_hosts"),
)
Ask = Callable[[str], Awaitable[bool]]


@dataclass(frozen=True)
class HostKeys:
    """Where known host keys are, and what becomes of a host whose key is not known.

    `accept_new` takes it down as known; otherwise `ask` is asked with a question in words, and
    without `ask` the host is refused. A key that differs from a known one is always refused.
    """

    own_file: Path
    user_files: tuple[Path, ...] = USER_FILES
    accept_new: bool = False
    ask: Ask | None = None
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock, init=False, compare=False)
    _settled: dict[tuple[str, str], bool] = field(default_factory=dict, init=False, compare=False)

    def known_files(self) -> list[str]:
        """Return the files of known hosts that are there."""
        files = (self.own_file, *(path.expanduser() for path in self.user_files))
        return [str(path) for path in files if path.is_file()]

    async def accept(self, host: str, where: str, key: asyncssh.SSHKey) -> None:
        """Take a new host's key down for the place where it was seen, if we may; else refuse."""
        shown = f"{_kind(key)} key {key.get_fingerprint()}"
        async with self._turn:
            # The same host may be met on several ways at once; a person is asked once all the same.
            met = (where, key.get_fingerprint())
            if met not in self._settled:
                self._settled[met] = await self._trusted(where, shown)
                if self._settled[met]:
                    self._record(where, key)
        if not self._settled[met]:
            raise TransportError(
                f"the host is not known; it shows the {shown}",
                host=host,
                hint="compare that with `ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub` on "
                "the host; then connect with `ssh` once, pin it as `host_key`, or say "
                "--accept-new-host-keys",
            )

    async def _trusted(self, where: str, shown: str) -> bool:
        """Return whether a key that nobody knows is trusted, by rule or by whoever is asked."""
        if self.accept_new:
            return True
        question = f"The host {where} is not known. It shows the {shown}. Trust it from now on?"
        return self.ask is not None and await self.ask(question)

    def _record(self, where: str, key: asyncssh.SSHKey) -> None:
        line = f"{where} {key.export_public_key().decode().strip()}\n"
        try:
            self.own_file.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self.own_file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            with os.fdopen(descriptor, "w") as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                file.write(line)
        except OSError as error:
            raise StorageError(f"{self.own_file} cannot be written: {error.strerror}") from error


class Judge:
    """Judges the key of one host during one attempt to connect."""

    def __init__(self, keys: HostKeys, pin: str | None) -> None:
        self._files = [] if pin is not None else keys.known_files()
        self._pin = pin
        self._trusted: list[asyncssh.SSHKey] = []
        self.place: str | None = None
        self.shown: asyncssh.SSHKey | None = None
        self.refusal: str | None = None

    def known(self, host: str, addr: str, port: int | None) -> tuple[list[object], ...]:
        """Return what is trusted for a host, in the order that asyncssh wants.

        `host` is what files of known hosts call it: its alias, or the address that it really has.
        """
        self.place = host if port is None else f"[{host}]:{port}"
        if self._pin is not None:
            pinned = _public_key(self._pin)
            self._trusted = [] if pinned is None else [pinned]
            return (list(self._trusted), [], [], [], [], [], [])
        if not self._files:
            return ([], [], [], [], [], [], [])
        found = asyncssh.match_known_hosts(self._files, host, addr, port)
        self._trusted = list(found[0])
        return tuple(list(part) for part in found)

    def judge(self, key: asyncssh.SSHKey) -> bool:
        """Say whether a key that is not among the trusted ones will do; if not, keep why."""
        self.shown = key
        shown = f"{_kind(key)} key {key.get_fingerprint()}"
        if self._pin is not None:
            if self._pin.strip() == key.get_fingerprint():
                return True
            self.refusal = f"the host shows the {shown}, and not the one that is pinned for it"
        elif self._trusted:
            known = ", ".join(item.get_fingerprint() for item in self._trusted)
            self.refusal = f"the host's key has CHANGED: it shows the {shown}; known is {known}"
        return False


def _public_key(pin: str) -> asyncssh.SSHKey | None:
    """Return the key of a pin that is a whole public key; None for a fingerprint."""
    if pin.strip().startswith("SHA256:"):
        return None
    try:
        return asyncssh.import_public_key(pin)
    except asyncssh.KeyImportError as error:
        raise TransportError(
            f"the host key that is pinned cannot be read: {error}",
            hint="give a line such as `ssh-ed25519 AAAA…`, or a fingerprint `SHA256:…`",
        ) from error


def _kind(key: asyncssh.SSHKey) -> str:
    return key.get_algorithm().removeprefix("ssh-").partition("-")[0]
