"""What every provider promises. A new adapter joins by a line in `FACTORIES`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

import pytest

from paceline.errors import NotFound
from paceline.model.command import Command
from paceline.model.host import Host
from paceline.ports import Provider
from paceline.providers.hosts import HostsProvider
from paceline.providers.local import LocalProvider
from paceline.rehearsal.hosts import SshHost
from paceline.transports.local import LocalTransport
from paceline.transports.ssh import SshTransport
from tests.fakes.provider import FakeProvider
from tests.lab import host_noun, no_keys


def _hosts(request: pytest.FixtureRequest) -> Provider:
    lab: tuple[SshHost, ...] = request.getfixturevalue("lab")
    hosts = tuple(host_noun(host) for host in lab)
    return HostsProvider(hosts, lambda host: SshTransport(host, no_keys(lab[0].folder)))


FACTORIES: Mapping[str, Callable[[pytest.FixtureRequest], Provider]] = {
    "local": lambda _: LocalProvider(LocalTransport),
    "fake": lambda _: FakeProvider("node-0", "node-1", "node-2"),
    "hosts": _hosts,
}


@pytest.fixture(params=["fake", "local", pytest.param("hosts", marks=pytest.mark.e2e)])
def provider(request: pytest.FixtureRequest) -> Provider:
    """Return one provider after another."""
    return FACTORIES[request.param](request)


def proving(check: Callable[[], Awaitable[None]]) -> None:
    """Carry out a check."""

    async def carry_out() -> None:
        await check()

    asyncio.run(carry_out())


def test_a_provider_has_a_name(provider: Provider, request: pytest.FixtureRequest) -> None:
    """Its name is the word that a spec uses for it, and its clusters bear it."""

    async def check() -> None:
        assert provider.name == request.node.callspec.params["provider"]
        assert (await provider.cluster()).provider == provider.name

    proving(check)


def test_a_cluster_has_hosts_with_names_of_their_own(provider: Provider) -> None:
    """There is at least one host, and no two share a name; the first is the master."""

    async def check() -> None:
        cluster = await provider.cluster()
        names = [host.name for host in cluster.hosts]
        assert len(set(names)) == len(names) >= 1
        assert cluster.master == cluster.hosts[0]
        assert all(host.address and host.peer_address for host in cluster.hosts)

    proving(check)


def test_the_order_of_the_hosts_stays(provider: Provider) -> None:
    """Node ranks do not move between two questions."""

    async def check() -> None:
        assert await provider.cluster() == await provider.cluster()

    proving(check)


def test_every_host_can_be_reached(provider: Provider) -> None:
    """A connection leads to the host that was asked for, and commands run there."""

    async def check() -> None:
        for host in (await provider.cluster()).hosts:
            transport = await provider.connect(host)
            assert transport.host == host
            assert (await transport.run(Command(("echo", host.name)))).stdout == f"{host.name}\n"
            await transport.close()

    proving(check)


def test_a_host_keeps_its_files_between_connections(
    provider: Provider, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """What was put on a host is found by the next who connects to it."""
    path = str(tmp_path_factory.mktemp("host") / "kept")

    async def check() -> None:
        host = (await provider.cluster()).master
        first = await provider.connect(host)
        await first.put_bytes(b"kept", path)
        await first.close()
        second = await provider.connect(host)
        assert (await second.run(Command(("cat", path)))).stdout == "kept"
        await second.close()

    proving(check)


def test_a_stranger_is_not_reached(provider: Provider) -> None:
    """A host that is not the provider's is refused by name."""

    async def check() -> None:
        with pytest.raises(NotFound, match="stranger"):
            await provider.connect(Host("stranger", "127.0.0.1", "127.0.0.1"))

    proving(check)
