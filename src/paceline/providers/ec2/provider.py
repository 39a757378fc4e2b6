"""The port `Provider`, for a cluster on EC2 that is up."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from paceline.errors import NotFound
from paceline.model.host import Cluster, Host
from paceline.ports import Transport


class Ec2Provider:
    """The hosts of one rented cluster; `find` looks them up, `reach` prepares the way to one."""

    def __init__(
        self, find: Callable[[], Awaitable[Cluster]], reach: Callable[[Host], Transport]
    ) -> None:
        self._find = find
        self._reach = reach

    @property
    def name(self) -> str:
        """The word that the spec uses for it."""
        return "ec2"

    async def cluster(self) -> Cluster:
        """Return the hosts that are up, in the order in which they were made."""
        return await self._find()

    async def connect(self, host: Host) -> Transport:
        """Prepare the way to a host; its key is pinned, so that no other machine will do."""
        if host.ssh is None or host.ssh.host_key is None:
            raise NotFound(f"{host.name} is not a host that this machine has rented")
        return self._reach(host)
