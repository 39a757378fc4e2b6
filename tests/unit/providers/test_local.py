from __future__ import annotations

import asyncio
import os

from paceline.providers.local import LocalProvider
from tests.fakes.transport import FakeTransport


def test_the_cluster_is_this_machine() -> None:
    """One host, by its own name, which its peers and we reach over the loopback."""
    cluster = asyncio.run(LocalProvider(FakeTransport).cluster())
    (host,) = cluster.hosts
    assert host.name == os.uname().nodename
    assert (host.address, host.peer_address) == ("127.0.0.1", "127.0.0.1")


def test_the_way_to_it_is_the_callers_choice() -> None:
    """The provider knows no transport: whoever wires it says how to reach the host."""

    async def check() -> None:
        provider = LocalProvider(FakeTransport)
        host = (await provider.cluster()).master
        assert isinstance(await provider.connect(host), FakeTransport)

    asyncio.run(check())
