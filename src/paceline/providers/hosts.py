"""The provider `hosts`: machines that are there already and answer to SSH."""

from __future__ import annotations

from collections.abc import Callable

from paceline.errors import NotFound
from paceline.model.host import Cluster, Host
from paceline.ports import Transport


class HostsProvider:
    """The port `Provider`, for a list of hosts; `reach` prepares the way to one of them."""

    def __init__(self, hosts: tuple[Host, ...], reach: Callable[[Host], Transport]) -> None:
        self._hosts = hosts
        self._reach = reach

    @property
    def name(self) -> str:
        """The word that the spec uses for it."""
        return "hosts"

    async def cluster(self) -> Cluster:
        """Return the hosts in the order of the list."""
        return Cluster(name=self.name, provider=self.name, hosts=self._hosts)

    async def connect(self, host: Host) -> Transport:
        """Prepare the way to a host; the connection is made when it is first used."""
        if host not in self._hosts:
            names = ", ".join(known.name for known in self._hosts[:5])
            raise NotFound(f"{host.name} is not among the hosts, which are {names}")
        return self._reach(host)
