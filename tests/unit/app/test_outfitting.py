"""A rented host is given what its spec has for it."""

from __future__ import annotations

import asyncio

from paceline.app.outfitting import run_commands
from paceline.app.pairs import End
from paceline.model.command import Command
from paceline.model.host import Host, HostFacts
from paceline.planning.settling import settle
from tests.fakes.transport import FakeHost, FakeProcess, FakeTransport

LINE = "sudo apt-get install -y htop"


async def _well(_: FakeProcess) -> int:
    return 0


def commands_on(*lines: str) -> list[Command]:
    """Return what a host was asked to run for these lines of a spec."""
    host, machine = Host("h", "", ""), FakeHost(programs={"/bin/sh": _well})
    end = End(host, FakeTransport(host, machine), HostFacts("h", 1), "python3", None)
    asyncio.run(run_commands((end,), lines, lambda _: None))
    return machine.history


def test_commands_begin_when_a_fresh_host_has_come_to_rest() -> None:
    """It is waited for once, before the first of them; where there are none, not at all."""
    plain = Command(("/bin/sh", "-c", LINE))
    assert commands_on(LINE, LINE) == [settle(), plain, plain]
    assert commands_on() == []
