"""A file or a folder brought to many hosts over their own links, not by as many uploads.

Every host is told what is to come and says what it lacks. The source gives it to the first, and
each host gives it to the next while it still arrives (`paceline.relay`). Hosts that were passed
over are served again, from somebody who has it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from paceline.app.pairs import End
from paceline.errors import PacelineError, StorageError, TransportError
from paceline.model.command import Command
from paceline.relay import line as wire
from paceline.relay.give import Giving
from paceline.relay.line import Peer
from paceline.relay.manifest import Manifest, manifest_of, survey
from paceline.relay.stock import Stock

_ROUNDS = 3
_TUNNEL_S = 30.0
OnBytes = Callable[[str, int, int], None]
"""Called with a host, what it has received, and what it lacked in the beginning."""
Wish = Callable[[], Awaitable[Mapping[str, Any]]]
"""What a relay is told, when it is known."""


@dataclass(frozen=True)
class HostFile:
    """A file or a folder that lies on a host."""

    host: str
    path: str


@dataclass(frozen=True)
class Delivery:
    """What became of it on one host; nothing is received where it was there already."""

    host: str
    received_bytes: int = 0
    error: PacelineError | None = None


async def broadcast(
    ends: Sequence[End],
    source: Path | HostFile,
    target: str | Mapping[str, str],
    *,
    leave_out: Sequence[str] = (),
    on_bytes: OnBytes | None = None,
) -> tuple[Delivery, ...]:
    """Bring a file or the files of a folder to hosts; return what became of it on each.

    The source lies here, or on one of the hosts. `target` is the same path on all hosts, or one
    for each by its name. `leave_out` are names that stay behind. Nothing is ever half there.
    """
    targets = {end.host.name: _target_on(end, target) for end in ends}
    work = _Broadcast(ends, targets, source, leave_out, on_bytes or _ignore)
    return await work.carry_out()


def require_delivered(deliveries: Sequence[Delivery]) -> None:
    """Raise one error that names every host that has not got it."""
    errors = [delivery.error for delivery in deliveries if delivery.error is not None]
    if len(errors) == 1:
        raise errors[0]
    if errors:
        lines = "\n".join(f"  {error}" for error in errors)
        raise type(errors[0])(
            f"{len(errors)} of {len(deliveries)} hosts have not got it:\n{lines}",
            hint=errors[0].hint,
        )


def _target_on(end: End, target: str | Mapping[str, str]) -> str:
    return target if isinstance(target, str) else target[end.host.name]


def _ignore(host: str, done: int, total: int) -> None:
    del host, done, total


def relay_command(end: End, verb: str) -> Command:
    """Return the command that starts a host's relay; what it is told stays off the line."""
    env = {"PYTHONPATH": end.import_path} if end.import_path else {}
    return Command((end.python, "-m", "paceline.relay", verb), env=env)


async def _messages(end: End, verb: str, wish: Wish) -> AsyncGenerator[dict[str, Any], None]:
    """Yield what a host's relay says; an error that it names is raised.

    The relay starts while we may not know yet what to tell it: half of a second, on slow hosts.
    """

    async def stdin() -> bytes:
        return json.dumps(await wish()).encode()

    stream = end.link.stream(relay_command(end, verb), stdin=stdin)
    async with contextlib.aclosing(stream) as lines:
        async for line in lines:
            message: dict[str, Any] = json.loads(line)
            if "error" in message:
                kind = TransportError if message.get("errno") is None else StorageError
                raise kind(str(message["error"]), host=end.host.name)
            yield message


@dataclass
class _Taking:
    """One host that takes, and how far it is."""

    end: End
    port: int | None = None
    missing_bytes: int = 0
    received_bytes: int = 0
    whole: bool = False
    error: PacelineError | None = None
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None

    @property
    def peer(self) -> Peer:
        """Where it listens for its peers."""
        return Peer(self.end.host.name, self.end.host.peer_address, self.port or 0)

    def skip(self, trouble: str) -> None:
        """Let it go: its peers could not reach it."""
        if self.whole or self.task is None:
            return
        self.error = TransportError(
            f"its peers cannot give it anything at {self.end.host.peer_address}: {trouble}",
            host=self.end.host.name,
            hint="let the hosts reach each other at every port, and give each its "
            "`private_address`; `paceline doctor` looks at every pair",
        )
        self.task.cancel()


class _Broadcast:
    def __init__(
        self,
        ends: Sequence[End],
        targets: Mapping[str, str],
        source: Path | HostFile,
        leave_out: Sequence[str],
        on_bytes: OnBytes,
    ) -> None:
        self._ends = {end.host.name: end for end in ends}
        self._targets = targets
        self._source = source
        self._leave_out = tuple(leave_out)
        self._on_bytes = on_bytes
        self._secret = secrets.token_hex(32)

    async def carry_out(self) -> tuple[Delivery, ...]:
        """Serve all hosts, and those that were passed over once more."""
        surveying = asyncio.ensure_future(self._survey())
        try:
            return await self._rounds(surveying)
        finally:
            surveying.cancel()
            await asyncio.gather(surveying, return_exceptions=True)

    async def _rounds(self, surveying: asyncio.Future[Manifest]) -> tuple[Delivery, ...]:
        received = dict.fromkeys(self._ends, 0)
        errors: dict[str, PacelineError] = {}
        waiting = [name for name in self._ends if not self._is_source(name)]
        source = self._source
        for _ in range(_ROUNDS):
            takings = await self._round(surveying, waiting, source)
            errors = {name: taking.error for name, taking in takings.items() if taking.error}
            for name, taking in takings.items():
                received[name] += taking.received_bytes
            served = [name for name in takings if name not in errors]
            waiting = [name for name in waiting if name in errors]
            if not waiting or not (served or any(t.received_bytes for t in takings.values())):
                break
            if isinstance(source, HostFile) and served:
                source = HostFile(served[0], self._targets[served[0]])
        return tuple(Delivery(name, received[name], errors.get(name)) for name in self._ends)

    def _is_source(self, name: str) -> bool:
        source = self._source
        there = isinstance(source, HostFile) and source.host == name
        return there and isinstance(source, HostFile) and source.path == self._targets[name]

    async def _survey(self) -> Manifest:
        if isinstance(self._source, Path):
            try:
                return await asyncio.to_thread(survey, str(self._source), self._leave_out)
            except OSError as error:
                where = error.filename or self._source
                raise StorageError(f"{where} cannot be read: {error.strerror or error}") from error
        end = self._ends[self._source.host]
        told = {"source": self._source.path, "leave_out": list(self._leave_out)}

        async def wish() -> Mapping[str, Any]:
            return told

        async with contextlib.aclosing(_messages(end, "survey", wish)) as messages:
            async for message in messages:
                return manifest_of(message["manifest"])
        raise TransportError(f"{self._source.path} could not be looked at", host=end.host.name)

    async def _round(
        self, surveying: asyncio.Future[Manifest], names: Sequence[str], source: Path | HostFile
    ) -> Mapping[str, _Taking]:
        """Let hosts take from a source and from each other; return how far each has come.

        All relays start at once, while the source is still surveyed.
        """
        takings = {name: _Taking(self._ends[name]) for name in names}
        for taking in takings.values():
            taking.task = asyncio.ensure_future(self._take(taking, surveying, takings))
        tasks = [taking.task for taking in takings.values() if taking.task is not None]
        giving = asyncio.ensure_future(self._give(surveying, source, takings))
        try:
            await asyncio.shield(surveying)
            await asyncio.gather(*tasks, return_exceptions=True)
            await giving
        finally:
            for task in (*tasks, giving):
                task.cancel()
            await asyncio.gather(*tasks, giving, return_exceptions=True)
        return takings

    async def _take(
        self,
        taking: _Taking,
        surveying: asyncio.Future[Manifest],
        takings: Mapping[str, _Taking],
    ) -> None:
        """Follow one host that takes, to its end."""
        name = taking.end.host.name

        async def wish() -> Mapping[str, Any]:
            return {
                "target": self._targets[name],
                "manifest": (await asyncio.shield(surveying)).to_dict(),
                "secret": self._secret,
                "address": taking.end.host.peer_address,
            }

        try:
            async with contextlib.aclosing(_messages(taking.end, "take", wish)) as messages:
                async for message in messages:
                    self._hear(taking, message, takings)
            if not taking.whole:
                raise TransportError("it stopped taking in the middle", host=name)
        except PacelineError as error:
            taking.error = None if taking.whole else error
        finally:
            taking.ready.set()

    def _hear(
        self, taking: _Taking, message: Mapping[str, Any], takings: Mapping[str, _Taking]
    ) -> None:
        if "listening" in message:
            taking.port, taking.missing_bytes = message["listening"], message["missing_bytes"]
        if "skipped" in message and message["skipped"] in takings:
            takings[message["skipped"]].skip(str(message["trouble"]))
        if "received" in message:
            taking.received_bytes = message["received"]
            self._on_bytes(taking.end.host.name, taking.received_bytes, taking.missing_bytes)
        taking.whole = taking.whole or "whole" in message or "done" in message
        taking.ready.set()

    async def _give(
        self,
        surveying: asyncio.Future[Manifest],
        source: Path | HostFile,
        takings: Mapping[str, _Taking],
    ) -> None:
        """Give everything to the first who lacks it; if even that cannot be done, end all."""
        try:
            if isinstance(source, Path):
                await self._give_from_here(surveying, source, takings)
            else:
                await self._give_from_there(surveying, source, takings)
        except PacelineError as error:
            await _route(takings)  # whoever has it already has said so by then
            for taking in takings.values():
                taking.skip(f"the source failed: {error}")

    async def _give_from_there(
        self,
        surveying: asyncio.Future[Manifest],
        source: HostFile,
        takings: Mapping[str, _Taking],
    ) -> None:
        async def wish() -> Mapping[str, Any]:
            return {
                "source": source.path,
                "manifest": (await asyncio.shield(surveying)).to_dict(),
                "secret": self._secret,
                "route": [peer._asdict() for peer in await _route(takings)],
            }

        giving = _messages(self._ends[source.host], "give", wish)
        async with contextlib.aclosing(giving) as messages:
            async for message in messages:
                if "skipped" in message:
                    takings[message["skipped"]].skip(str(message["trouble"]))

    async def _give_from_here(
        self,
        surveying: asyncio.Future[Manifest],
        source: Path,
        takings: Mapping[str, _Taking],
    ) -> None:
        """Give in a thread, through a tunnel to the first host that takes."""
        loop = asyncio.get_running_loop()
        stock = Stock(await asyncio.shield(surveying), str(source))
        stock.believe()

        def dial(peer: Peer) -> Any:
            link = takings[peer.name].end.link
            tunnel = asyncio.run_coroutine_threadsafe(link.tunnel(peer.port), loop)
            return wire.dial("127.0.0.1", tunnel.result(_TUNNEL_S), _TUNNEL_S)

        def on_skip(peer: Peer, trouble: str) -> None:
            loop.call_soon_threadsafe(takings[peer.name].skip, trouble)

        giving = Giving(self._secret, on_skip, dial)
        await asyncio.to_thread(giving.give, stock, await _route(takings))


async def _route(takings: Mapping[str, _Taking]) -> list[Peer]:
    """Return those who lack something, when all have said whether they do."""
    await asyncio.gather(*(taking.ready.wait() for taking in takings.values()))
    return [taking.peer for taking in takings.values() if taking.port is not None]
