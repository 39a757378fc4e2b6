"""A desk to rent at, for tests that speak to the emulated API and have no machines behind it."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from paceline.app.observers import Unwatched
from paceline.app.renting import Desk
from paceline.errors import TransportError
from paceline.model.command import Command, Completed, Secret
from paceline.model.ec2 import ClusterKey, DiskWish, Wish
from paceline.model.host import Host
from paceline.ports import Cloud, KeyPair, RentalObserver
from paceline.store.keyring import FileKeyring
from paceline.store.ledger import SqliteLedger
from tests.fakes.transport import FakeTransport

KEY = ClusterKey("study", "ann@desk", "us-east-1")


class HurriedClock:
    """A clock whose waiting costs no time; it goes on by what was waited for."""

    def __init__(self) -> None:
        self.waited_s = 0.0

    def now(self) -> float:
        """Return the time, what was waited for included."""
        return time.time() + self.waited_s

    def monotonic(self) -> float:
        """Return seconds that never go back."""
        return time.monotonic() + self.waited_s

    async def sleep(self, seconds: float) -> None:
        """Let the time pass, and give others a turn."""
        self.waited_s += seconds
        await asyncio.sleep(0.001)


@dataclass
class SshWorld:
    """Hosts by address, each with the key that it shows; an unknown one shows what is expected."""

    shown: dict[str, str] = field(default_factory=dict)
    made: dict[str, str] = field(default_factory=dict)
    silent: set[str] = field(default_factory=set)
    contacts: list[tuple[str, str]] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    _numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    def reach(self, host: Host) -> FakeTransport:
        """Prepare the way to a host."""
        return _Answering(host, self)

    def answer(self, host: Host, command: Command) -> str:
        """Return what a host says to a command, if it is the one that is meant."""
        expected = host.ssh.host_key if host.ssh is not None else None
        if host.address in self.silent:
            raise TransportError("it does not answer", host=host.name)
        if self.shown.setdefault(host.address, expected or "") != expected:
            raise TransportError("the host shows another key", host=host.name)
        self.contacts.append((host.address, expected or ""))
        script = (command.stdin or b"").decode()
        self.said.append(script)
        if "ssh-keygen" in script:
            fresh = f"ssh-ed25519 NEW{next(self._numbers)}"
            return self.made.setdefault(host.address, fresh)
        if "HUP" in script:
            self.shown[host.address] = self.made.pop(host.address, self.shown[host.address])
        return ""


class _Answering(FakeTransport):
    def __init__(self, host: Host, world: SshWorld) -> None:
        super().__init__(host)
        self._world = world

    async def run(
        self,
        command: Command,
        *,
        timeout_s: float | None = 60.0,
        on_line: Callable[[str, str], None] | None = None,
    ) -> Completed:
        """Answer as the world says."""
        del timeout_s, on_line
        await asyncio.sleep(0)
        return Completed(command, 0, self._world.answer(self.host, command), "")


def quick_key() -> KeyPair:
    """Return a key that nobody can use, at no cost."""
    public = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAINUSoIO9y4OSFGXXhIQ4RD/VtNTQLQUYlQmW8qpOqqC3 test"
    return KeyPair(Secret("PRIVATE HALF\n"), public)


def desk_at(
    cloud: Cloud,
    folder: Path,
    *,
    world: SshWorld | None = None,
    watcher: RentalObserver | None = None,
    clock: HurriedClock | None = None,
    make: Callable[[], KeyPair] = quick_key,
) -> Desk:
    """Return a desk with real files and a real API, and a world of hosts that does not exist."""

    async def find_address() -> str | None:
        return "203.0.113.7"

    return Desk(
        cloud=cloud,
        ledger=SqliteLedger(folder / "ledger.sqlite"),
        keyring=FileKeyring(folder / "clusters", make),
        clock=clock or HurriedClock(),
        reach=(world or SshWorld()).reach,
        find_address=find_address,
        watcher=watcher or Unwatched(),
    )


def wish(
    nodes: int = 2,
    *,
    types: tuple[str, ...] = ("m5.large",),
    key: ClusterKey = KEY,
    min_nodes: int | None = None,
    placement: str = "cluster",
    market: str = "on-demand",
    image: str = "ubuntu-24.04",
    zones: tuple[str, ...] = (),
    disk: DiskWish | None = None,
) -> Wish:
    """Return what a test asks for."""
    return Wish(
        key=key, types=types, nodes=nodes, min_nodes=min_nodes or nodes, image=image, user=None,
        disk=disk or DiskWish(), placement=placement, market=market, ssh_from=("me",),
        open_ports=(), zones=zones, subnet=None, ttl_s=3600.0,
    )  # fmt: skip
