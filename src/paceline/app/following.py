"""Following a job on all its hosts: what they say, without gap or repeat, until all have ended."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from paceline.app.jobs import FileChunk, follow_job
from paceline.errors import HostRefuses, TransportError
from paceline.model.plan import HostPlan, RunPlan
from paceline.ports import Clock, Transport
from paceline.supervisor.job import JobState, Notice

OnChunk = Callable[[FileChunk], None]
# One silent host among others is lost soon; if all are silent, it is rather our own network.
# The silence begins when the connection has been given up.
LOST_AFTER_S = 5.0
_ALL_LOST_AFTER_S = 120.0
TRY_AGAIN_AFTER_S = 0.5


@dataclass
class Following:
    """One reader of a run: the ways to its hosts, and which of them are silent.

    `notices` are those of hosts that are taken back.
    """

    links: Mapping[str, Transport]
    plan: RunPlan
    clock: Clock
    silent: set[str] = field(default_factory=set)
    notices: dict[str, Notice] = field(default_factory=dict)

    @property
    def hosts(self) -> tuple[HostPlan, ...]:
        """The hosts that have something to do."""
        return tuple(host for host in self.plan.hosts if host.processes)

    async def messages(self, host: HostPlan) -> AsyncGenerator[FileChunk | JobState, None]:
        """Yield what one host says until its job has ended; a broken connection is resumed."""
        name, offsets = host.host.name, dict[str, int]()
        silent_since: float | None = None
        left_s: float | None = None
        while True:
            try:
                attempt = self._attempt(host, offsets, left_s)
                async with contextlib.aclosing(attempt) as messages:
                    async for message in messages:
                        silent_since = None
                        self.silent.discard(name)
                        if isinstance(message, FileChunk):
                            offsets[message.file] = message.end
                        elif message.notice is not None:
                            self.notices[name] = message.notice
                        yield message
            except TransportError as error:
                now = self.clock.monotonic()
                silent_since = now if silent_since is None else silent_since
                self.silent.add(name)
                left_s = self._mind(host, now - silent_since, error)
            else:
                return
            await self.clock.sleep(TRY_AGAIN_AFTER_S)

    async def _attempt(
        self, host: HostPlan, offsets: Mapping[str, int], answer_within_s: float | None
    ) -> AsyncGenerator[FileChunk | JobState, None]:
        """Yield what a host says from now on; the first word is waited for so long at most."""
        ended = False
        link = self.links[host.host.name]
        async with contextlib.aclosing(follow_job(link, self.plan, offsets)) as messages:
            first: FileChunk | JobState | None = await _first(messages, answer_within_s, link)
            if first is not None:
                ended = isinstance(first, JobState) and first.ended
                yield first
            async for message in messages:
                ended = isinstance(message, JobState) and message.ended
                yield message
        if not ended:
            raise TransportError("the connection ended before the job did", host=host.host.name)

    def _mind(self, host: HostPlan, silent_s: float, error: TransportError) -> float | None:
        """Give a host up that was silent for too long; return how long it may yet be silent."""
        if host.host.ssh is None:
            raise error  # there is no network in between that could come back
        alone = len(self.silent) >= len(self.hosts)
        # A host that refuses is on, and its ranks may be at work: its sshd is started anew.
        patient = alone or isinstance(error, HostRefuses)
        patience_s = _ALL_LOST_AFTER_S if patient else LOST_AFTER_S
        if silent_s >= patience_s:
            raise TransportError(
                f"the host is lost: {error.message}",
                host=host.host.name,
                hint="is it still on, and its network there? Once it is back, "
                f"`paceline stop {self.plan.run_id}` ends what is left on it",
            ) from error
        # An attempt to connect would otherwise outlast what is left of the patience.
        return None if patient else patience_s - silent_s


async def _first(
    messages: AsyncGenerator[FileChunk | JobState, None], within_s: float | None, link: Transport
) -> FileChunk | JobState | None:
    """Return the first message, or None if there is none; the ranks of others wait meanwhile."""
    try:
        return await asyncio.wait_for(anext(messages, None), within_s)
    except asyncio.TimeoutError as error:
        raise TransportError("it does not answer any more", host=link.host.name) from error


async def listen_to(following: Following, on_chunk: OnChunk) -> None:
    """Hear what all hosts say until the job has ended everywhere; nothing is acted on."""

    async def hear(host: HostPlan) -> None:
        async with contextlib.aclosing(following.messages(host)) as messages:
            async for message in messages:
                if isinstance(message, FileChunk):
                    on_chunk(message)

    await asyncio.gather(*(hear(host) for host in following.hosts))


async def follow_all(
    following: Following, on_chunk: OnChunk, on_failure: Callable[[], Awaitable[object]]
) -> Mapping[str, JobState]:
    """Follow all hosts to the end and return their last states; the first failure is acted on."""
    states: dict[str, JobState] = {}
    failed = asyncio.Event()

    async def follow(host: HostPlan) -> None:
        async with contextlib.aclosing(following.messages(host)) as messages:
            async for message in messages:
                if isinstance(message, FileChunk):
                    on_chunk(message)
                    continue
                states[host.host.name] = message
                if message.ended and message.outcome != "succeeded":
                    failed.set()

    async def act_on_failure() -> None:
        await failed.wait()
        await on_failure()

    watcher = asyncio.ensure_future(act_on_failure())
    followers = [asyncio.ensure_future(follow(host)) for host in following.hosts]
    try:
        await asyncio.gather(*followers)
    finally:
        for task in (*followers, watcher):
            task.cancel()
        await asyncio.gather(*followers, watcher, return_exceptions=True)
    return states
