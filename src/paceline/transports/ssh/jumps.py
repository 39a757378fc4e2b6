"""Connections to jump hosts, each shared by all the hosts that are reached through it.

A server that many hosts lie behind would refuse as many connections at once (sshd's MaxStartups).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import asyncssh

from paceline.errors import TransportError

Opening = Callable[[], Awaitable[asyncssh.SSHClientConnection]]


@dataclass
class _Shared:
    """One jump host: its connection, or why there is none, and how many need it."""

    users: int = 0
    connection: asyncssh.SSHClientConnection | None = None
    error: TransportError | None = None
    opening: asyncio.Lock = field(default_factory=asyncio.Lock)


class Lease:
    """One host's share of the connection to its jump host; to be given back once."""

    def __init__(
        self, connection: asyncssh.SSHClientConnection, give_back: Callable[[], None]
    ) -> None:
        self.connection = connection
        self._give_back: Callable[[], None] | None = give_back

    def release(self) -> None:
        """Give the share back; calling it twice is harmless."""
        give_back, self._give_back = self._give_back, None
        if give_back is not None:
            give_back()


class Jumps:
    """The jump hosts of one set of hosts."""

    def __init__(self) -> None:
        self._shared: dict[str, _Shared] = {}

    async def lease(self, name: str, opening: Opening) -> Lease:
        """Return a share of the connection of that name; the first who asks for it opens it."""
        shared = self._shared.setdefault(name, _Shared())
        shared.users += 1
        try:
            async with shared.opening:
                return Lease(await _opened(shared, opening), lambda: self._release(name, shared))
        except BaseException:
            self._release(name, shared)
            raise

    def _release(self, name: str, shared: _Shared) -> None:
        shared.users -= 1
        if shared.users == 0:
            if self._shared.get(name) is shared:
                del self._shared[name]
            if shared.connection is not None:
                shared.connection.close()


async def _opened(shared: _Shared, opening: Opening) -> asyncssh.SSHClientConnection:
    if shared.error is not None:
        # Those who have waited beside the first would wait as long again, one after the other.
        failed = shared.error
        raise type(failed)(failed.message, hint=failed.hint, host=failed.host)
    if shared.connection is None or shared.connection.is_closed():
        try:
            shared.connection = await opening()
        except TransportError as error:
            shared.error = error
            raise
    return shared.connection
