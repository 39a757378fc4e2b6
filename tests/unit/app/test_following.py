"""Following a job: a broken connection is resumed, a lost host is given up by its name."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator

import pytest

from paceline.app.following import LOST_AFTER_S, TRY_AGAIN_AFTER_S, Following
from paceline.app.jobs import FileChunk
from paceline.errors import TransportError
from paceline.model.command import Command
from paceline.model.host import Host, SshAccess
from paceline.model.plan import Configuration, HostPlan, JobPlace, ProcessPlan, RunPlan
from paceline.ports import LaterInput
from paceline.transports.ssh.connection import NOTICED_AFTER_S
from tests.fakes.transport import FakeTransport

ENDED: dict[str, object] = {"state": {"job_id": "r", "phase": "ended", "outcome": "succeeded"}}


def chunk(start: int, text: str) -> dict[str, object]:
    """Return what a supervisor says of a log."""
    return {"file": "logs/a.log", "start": start, "end": start + len(text), "text": text}


class Told(FakeTransport):
    """A host whose follower says what it is told to, one script per connection."""

    def __init__(self, host: Host, *scripts: list[dict[str, object]]) -> None:
        super().__init__(host)
        self.scripts = list(scripts)
        self.asked: list[tuple[str, ...]] = []

    async def stream(
        self, command: Command, *, stdin: LaterInput | None = None
    ) -> AsyncGenerator[str, None]:
        """Say the next script; each but the last breaks off at its end."""
        del stdin
        self.asked.append(command.argv)
        if not self.scripts:
            raise TransportError("no route", host=self.host.name)
        for message in self.scripts.pop(0):
            yield json.dumps(message)


class Quick:
    """A clock on which nobody waits."""

    def __init__(self) -> None:
        self.time = 0.0

    def now(self) -> float:
        """Unix seconds."""
        return self.time

    def monotonic(self) -> float:
        """Seconds that never go back."""
        return self.time

    async def sleep(self, seconds: float) -> None:
        """Let the time pass."""
        self.time += seconds


def following(*links: Told) -> Following:
    """Return a reader of a run on these hosts."""
    process = ProcessPlan("a", Command(("true",)), (0,))
    hosts = tuple(
        HostPlan(link.host, rank, (process,), JobPlace("/job", "python3"))
        for rank, link in enumerate(links)
    )
    plan = RunPlan("r", Configuration(len(links), 1), "direct", hosts, "a", 1)
    return Following({link.host.name: link for link in links}, plan, Quick())


def remote(name: str) -> Host:
    """Return a host behind a network."""
    return Host(name, name, name, SshAccess())


def texts(reader: Following, place: int) -> list[str]:
    """Return the text that one host says."""

    async def collect() -> list[str]:
        messages = reader.messages(reader.hosts[place])
        return [item.text async for item in messages if isinstance(item, FileChunk)]

    return asyncio.run(collect())


def test_a_broken_connection_is_resumed_where_it_broke() -> None:
    """The next connection asks for what comes after the last text that was seen."""
    link = Told(remote("a"), [chunk(0, "one\n")], [], [chunk(4, "two\n"), ENDED])
    assert texts(following(link), 0) == ["one\n", "two\n"]
    assert "--since" not in link.asked[0]
    assert link.asked[2][-2:] == ("--since", '{"logs/a.log": 4}')


def test_one_lost_host_among_others_is_given_up_soon() -> None:
    """Its name and the reason are in the error."""
    reader = following(Told(remote("a")), Told(remote("b")))
    with pytest.raises(TransportError, match="lost: no route") as caught:
        texts(reader, 1)
    assert caught.value.host == "b"
    assert 4 < reader.clock.monotonic() < 10


def test_a_host_that_keeps_us_waiting_is_given_up_as_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """An attempt to connect that hangs does not make the ranks of the others wait longer."""
    monkeypatch.setattr("paceline.app.following.LOST_AFTER_S", 0.2)

    class Hanging(Told):
        async def stream(
            self, command: Command, *, stdin: LaterInput | None = None
        ) -> AsyncGenerator[str, None]:
            if len(self.asked) > 0:
                await asyncio.sleep(60)
            async for line in super().stream(command, stdin=stdin):
                yield line

    reader = following(Told(remote("a")), Hanging(remote("b"), [chunk(0, "one\n")]))
    with pytest.raises(TransportError, match="lost: it does not answer any more") as caught:
        asyncio.run(asyncio.wait_for(asyncio.to_thread(texts, reader, 1), 30))
    assert caught.value.host == "b"
    assert "paceline stop r" in str(caught.value.hint)


def test_where_all_hosts_are_silent_the_network_is_waited_for() -> None:
    """A job on one host, or on hosts that are all silent, is not given up at once."""
    reader = following(Told(remote("a")))
    with pytest.raises(TransportError):
        texts(reader, 0)
    assert reader.clock.monotonic() > 60


def test_this_machine_cannot_come_back() -> None:
    """Without a network in between, an error is final at once."""
    reader = following(Told(Host("here", "127.0.0.1", "127.0.0.1")))
    with pytest.raises(TransportError):
        texts(reader, 0)
    assert reader.clock.monotonic() == 0


def test_the_time_to_stop_the_others_is_left_when_a_host_is_lost() -> None:
    """Of the 15 seconds that are promised from the break on, some remain for stopping them."""
    assert NOTICED_AFTER_S + TRY_AGAIN_AFTER_S + LOST_AFTER_S <= 12
