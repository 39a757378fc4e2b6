"""One child process of ours, with its pipes, that never outlives its `async with`."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncGenerator, AsyncIterator
from typing import cast

from paceline.model.command import Command
from paceline.ports import OnLine
from paceline.supervisor import procfs
from paceline.transports.reading import last_bytes, lines_of, told

_STDIN, _STDOUT, _STDERR = 0, 1, 2
_CHUNK_BYTES = 64 * 1024
_POLITE_S = 2.0
# A daemon that was started may keep a pipe open that its starter has left: not waited for.
_LAST_WORDS_S = 2.0


@contextlib.asynccontextmanager
async def child_process(command: Command, *, feed: bool = True) -> AsyncIterator[ChildProcess]:
    """Start a command in a process group of its own; end that group on the way out.

    Without `feed`, its input is left open for `give`.
    """
    loop = asyncio.get_running_loop()
    pipe = asyncio.subprocess.PIPE
    transport, protocol = await loop.subprocess_exec(
        lambda: _Protocol(loop),
        *command.argv,
        stdin=asyncio.subprocess.DEVNULL if feed and command.stdin is None else pipe,
        stdout=pipe,
        stderr=pipe,
        env={**os.environ, **command.plain_env()},
        cwd=command.cwd,
        start_new_session=True,
    )
    child = ChildProcess(transport, protocol)
    try:
        if feed:
            child.feed(command.stdin)
        yield child
    finally:
        await child.end()


class _Protocol(asyncio.SubprocessProtocol):
    """Passes what a child says to two stream readers, which slow it down if nobody reads."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.readers = {fd: asyncio.StreamReader(_CHUNK_BYTES) for fd in (_STDOUT, _STDERR)}
        self.exited: asyncio.Future[None] = loop.create_future()
        self.closed: asyncio.Future[None] = loop.create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        for fd, reader in self.readers.items():
            pipe = cast("asyncio.SubprocessTransport", transport).get_pipe_transport(fd)
            if pipe is not None:
                reader.set_transport(pipe)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self.readers[fd].feed_data(data)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        del exc
        if fd in self.readers:
            self.readers[fd].feed_eof()

    def process_exited(self) -> None:
        _settle(self.exited)

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        _settle(self.closed)


def _settle(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


class ChildProcess:
    """A running child."""

    def __init__(self, transport: asyncio.SubprocessTransport, protocol: _Protocol) -> None:
        self._transport = transport
        self._protocol = protocol

    def feed(self, data: bytes | None) -> None:
        """Give the child its input, all of it, and no more."""
        pipe = self._transport.get_pipe_transport(_STDIN)
        if data is None or pipe is None:
            return
        writer = cast("asyncio.WriteTransport", pipe)
        writer.write(data)
        writer.close()

    async def give(self, data: bytes) -> None:
        """Give the child its input, all of it, and no more."""
        self.feed(data)

    async def exit_code(self) -> int:
        """Wait for the end; a negative code is the signal that brought it."""
        await asyncio.shield(self._protocol.exited)
        code = self._transport.get_returncode()
        return -1 if code is None else code

    async def said(self, on_line: OnLine | None = None) -> tuple[str, str]:
        """Wait for the end and return all of stdout and stderr; tell each line as it comes."""
        readers = tuple(self._protocol.readers.values())
        reading = asyncio.gather(*told(readers, on_line))
        try:
            await self.exit_code()
            await asyncio.wait({reading}, timeout=_LAST_WORDS_S)
        finally:
            for reader in readers:
                reader.feed_eof()
        out, err = await reading
        return out, err

    def lines(self) -> AsyncGenerator[str, None]:
        """Yield the lines of stdout as they come, however long they are."""
        return lines_of(self._protocol.readers[_STDOUT])

    async def last_errors(self, size: int) -> str:
        """Read stderr to its end and return what it said last."""
        return await last_bytes(self._protocol.readers[_STDERR], size)

    async def end(self) -> None:
        """End the child and its group if it still runs, and let go of its pipes.

        A second cancellation cuts the politeness short, but not the wait for the end: a child
        that nobody has waited for would stay as a zombie.
        """
        hurried: asyncio.CancelledError | None = None
        was_running = self._signal(signal.SIGTERM)
        if was_running:
            try:
                await asyncio.wait({self._protocol.exited}, timeout=_POLITE_S)
            except asyncio.CancelledError as error:
                hurried = error
        self._signal(signal.SIGKILL)
        self._transport.close()
        while not self._protocol.closed.done():
            try:
                await asyncio.wait({self._protocol.closed})
            except asyncio.CancelledError as error:  # noqa: PERF203 - once or twice in a lifetime
                hurried = error
        if was_running:
            _kill_session(self._transport.get_pid())
        if hurried is not None:
            raise hurried

    def _signal(self, signum: int) -> bool:
        """Send a signal to the group while its leader lives, whose pid cannot be another's yet."""
        if self._transport.get_returncode() is not None:
            return False
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._transport.get_pid(), signum)
        return True


def _kill_session(leader: int) -> None:
    """Kill what a leader that is gone has left in its session, deaf to the polite request."""
    left = [entry for entry in procfs.all_entries() if entry.session == leader and entry.alive]
    if any(entry.pid == leader for entry in left):
        # The number has passed to somebody else, who leads a session of the same name.
        return
    for entry in left:
        procfs.send(entry, signal.SIGKILL)
