"""A provider of fake hosts, for tests of what is done with a cluster."""

from __future__ import annotations

from paceline.errors import NotFound
from paceline.model.host import Cluster, Host
from tests.fakes.transport import FakeHost, FakeTransport


class FakeProvider:
    """The port `Provider`; its hosts live as long as it does, however often it is connected to."""

    def __init__(self, *names: str) -> None:
        self.machines = {name: FakeHost() for name in names}

    @property
    def name(self) -> str:
        """The word for it."""
        return "fake"

    async def cluster(self) -> Cluster:
        """Return the hosts."""
        hosts = tuple(
            Host(name, f"192.0.2.{number}", f"10.0.0.{number}")
            for number, name in enumerate(self.machines, start=1)
        )
        return Cluster(self.name, self.name, hosts)

    async def connect(self, host: Host) -> FakeTransport:
        """Open the way to one host."""
        if host not in (await self.cluster()).hosts:
            raise NotFound(f"there is no host {host.name}")
        return FakeTransport(host, self.machines[host.name])
