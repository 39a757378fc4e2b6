"""The provider `local`: a cluster of one host, which is this machine."""

from __future__ import annotations

import os
from collections.abc import Callable

from paceline.errors import NotFound
from paceline.model.host import Cluster, Host
from paceline.ports import Transport

_LOOPBACK = "127.0.0.1"


class LocalProvider:
    """The port `Provider`, for the machine that we are on; `reach` opens the way to it."""

    def __init__(self, reach: Callable[[Host], Transport]) -> None:
        self._reach = reach

    @property
    def name(self) -> str:
        """The word that the spec uses for it."""
        return "local"

    async def cluster(self) -> Cluster:
        """Return this machine, under its own name and reached by its loopback."""
        host = Host(name=os.uname().nodename, address=_LOOPBACK, peer_address=_LOOPBACK)
        return Cluster(name=self.name, provider=self.name, hosts=(host,))

    async def connect(self, host: Host) -> Transport:
        """Open the way to this machine."""
        cluster = await self.cluster()
        if host not in cluster.hosts:
            raise NotFound(
                f"{host.name} is not this machine, which is {cluster.master.name}",
                hint="What was begun there goes on there: ask about it on that machine.",
            )
        return self._reach(host)
