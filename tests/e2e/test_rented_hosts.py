"""Rented hosts with a real sshd behind an emulated API: host keys that are pinned and renewed."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from paceline.api.wiring import SystemClock
from paceline.app.meeting import Patience
from paceline.app.provision import bring_up
from paceline.app.renting import Desk
from paceline.app.teardown import take_down
from paceline.errors import TransportError
from paceline.model.command import Command, Secret
from paceline.model.host import Cluster, Host
from paceline.ports import KeyPair, Transport
from paceline.providers.ec2 import Ec2Cloud
from paceline.rehearsal.emulator import Emulator
from paceline.rehearsal.emulator.keeper import Keeper
from paceline.rehearsal.hosts import SshHost
from paceline.transports.ssh import HostKeys, SshTransport
from tests.fakes.rented import KEY, desk_at, wish
from tests.lab import lab_of

pytestmark = pytest.mark.e2e
REFUSED = re.compile("its host key is not known|not the one that is pinned")
PATIENCE = Patience(boot_s=8.0, new_key_s=10.0)


class Addresses(Keeper):
    """Gives every instance the address of a host that is there."""

    def __init__(self) -> None:
        self.address = ""

    def public_address(self, region: str) -> str | None:
        """Return that address."""
        del region
        return self.address


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[SshHost, ...]]:
    """Return two hosts of our own, whose keys change."""
    with lab_of(2, tmp_path_factory.mktemp("rented")) as hosts:
        yield hosts


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Emulator, Addresses]]:
    """Return an account whose instances stand at addresses that we choose."""
    keeper = Addresses()
    with Emulator(keeper=keeper) as emulator:
        for name, value in emulator.environ.items():
            monkeypatch.setenv(name, value)
        yield emulator, keeper


@pytest.fixture
def desk_for(
    account: tuple[Emulator, Addresses], tmp_path: Path
) -> Callable[[SshHost, SshHost], Desk]:
    """Return what makes a desk that expects one host, at whose address stands another."""
    emulator, keeper = account

    def make(expected: SshHost, there: SshHost) -> Desk:
        keeper.address = there.address
        halves = iter((_pair(expected.user_key), _pair(expected.folder / "host_key")))
        keys = HostKeys(tmp_path / "known_hosts", user_files=())

        def reach(host: Host) -> Transport:
            assert host.ssh is not None
            # The lab knows root alone; everything else is as it is rented.
            return SshTransport(replace(host, ssh=replace(host.ssh, user="root")), keys)

        made = desk_at(Ec2Cloud(emulator.region), tmp_path / "home", make=lambda: next(halves))
        return replace(made, reach=reach, clock=SystemClock())

    return make


def _pair(path: Path) -> KeyPair:
    public = path.with_name(f"{path.name}.pub").read_text().strip()
    return KeyPair(Secret(path.read_text()), public)


def up(desk: Desk, there: SshHost) -> Cluster:
    """Bring one host up, whose key lies where the lab keeps it."""
    return asyncio.run(bring_up(desk, wish(1), PATIENCE, str(there.folder / "host_key")))


async def said(desk: Desk, host: Host) -> str:
    """Let a host say something."""
    link = desk.reach(host)
    try:
        return (await link.run(Command(("echo", "here")))).stdout
    finally:
        await link.close()


def test_the_key_of_the_user_data_is_worth_nothing_afterwards(
    machines: tuple[SshHost, ...], desk_for: Callable[[SshHost, SshHost], Desk]
) -> None:
    """A host is met with the key that it was given, and then answers only to one of its own."""
    host = machines[0]
    given = host.host_key
    desk = desk_for(host, host)
    cluster = up(desk, host)
    (rented,) = cluster.hosts
    assert rented.ssh is not None
    pinned = str(rented.ssh.host_key)
    assert pinned.split()[1] != given.split()[1]
    assert pinned.split()[1] == host.host_key.split()[1]
    assert asyncio.run(said(desk, rented)) == "here\n"
    with pytest.raises(TransportError, match=REFUSED):
        asyncio.run(said(desk, replace(rented, ssh=replace(rented.ssh, host_key=given))))
    # A second `up` finds the host by its new key, and leaves it at that.
    assert up(desk, host) == cluster
    asyncio.run(take_down(desk, KEY))


def test_a_machine_in_the_middle_is_refused(
    machines: tuple[SshHost, ...],
    account: tuple[Emulator, Addresses],
    desk_for: Callable[[SshHost, SshHost], Desk],
) -> None:
    """Whoever answers at the host's address with another key gets nothing, and `up` goes back."""
    expected, impostor = machines
    desk = desk_for(expected, impostor)
    with pytest.raises(TransportError, match=REFUSED):
        up(desk, impostor)
    assert account[0].instances() == []
    assert desk.ledger.clusters() == ()
