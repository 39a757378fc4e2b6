"""One command on a host, with its streams, that never outlives its `async with`."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import signal
import time
from collections.abc import AsyncGenerator, AsyncIterator
from typing import cast

import asyncssh

from paceline.model.command import Command
from paceline.ports import OnLine
from paceline.transports.reading import last_bytes, lines_of, told
from paceline.transports.ssh.script import END_GROUP, READ_AND_RUN, first_line

_CHUNK_BYTES = 256 * 1024
_POLITE_S = 2.0
# A busy host may take so long to start a command, and as long again to start what ends it. One
# that has vanished is noticed no later: the connection then breaks.
_BUSY_S = 6.0
# A daemon that was started may keep a stream open that its starter has left: not waited for.
_LAST_WORDS_S = 2.0
_SESSION_WITHIN_S = 5.0
_SESSION_RETRY_S = 0.02
_LONGEST_PREAMBLE_BYTES = 64 * 1024
# In the place of a verdict: the connection ended before there was one.
_BROKEN = "broken"
_STDERR = asyncssh.EXTENDED_DATA_STDERR


class Broken(Exception):
    """The connection, or the command's channel, ended before the command did."""


class NotStarted(Exception):
    """The host could not start the command: `what` it lacks, or what its shell said."""

    def __init__(self, what: str, said: str = "") -> None:
        super().__init__(what, said)
        self.what = what
        self.said = said


@contextlib.asynccontextmanager
async def remote_process(
    connection: asyncssh.SSHClientConnection, command: Command, *, feed: bool = True
) -> AsyncIterator[RemoteProcess]:
    """Start a command in a process group of its own; end that group on the way out.

    Without `feed`, its input is left open for `write`.
    """
    token = secrets.token_hex(12)
    line = first_line(command, token)
    channel, session = await _open_session(connection, token)
    process = RemoteProcess(connection, channel, session)
    feeding: asyncio.Future[None] | None = None
    try:
        await process.write(line)
        await process.started()
        if feed:
            feeding = asyncio.ensure_future(process.give(command.stdin or b""))
        yield process
    finally:
        if feeding is not None:
            feeding.cancel()
        await process.end()


async def _open_session(
    connection: asyncssh.SSHClientConnection, token: str
) -> tuple[asyncssh.SSHClientChannel[bytes], _Session]:
    """Open a session; a server counts one that has just ended for a moment longer."""
    give_up_at = time.monotonic() + _SESSION_WITHIN_S
    while True:
        try:
            channel, session = await connection.create_session(
                lambda: _Session(token),
                READ_AND_RUN,
                encoding=None,
                request_pty=False,
                env=(),
                send_env=(),
            )
            return channel, cast("_Session", session)
        except asyncssh.ChannelOpenError:
            if connection.is_closed():
                raise Broken from None
            if time.monotonic() > give_up_at:
                raise
        await asyncio.sleep(_SESSION_RETRY_S)


class _Session(asyncssh.SSHClientSession[bytes]):
    """Passes what a command says to two stream readers, without what came before it."""

    def __init__(self, token: str) -> None:
        loop = asyncio.get_running_loop()
        self.readers = {kind: asyncio.StreamReader(_CHUNK_BYTES) for kind in (None, _STDERR)}
        self.preamble: asyncio.Future[str] = loop.create_future()
        self.exit_code: int | None = None
        self.exited: asyncio.Future[None] = loop.create_future()
        self.closed: asyncio.Future[None] = loop.create_future()
        self.may_write = asyncio.Event()
        self.may_write.set()
        self._token = token.encode()
        self._waiting: dict[int | None, bytes] = {None: b"", _STDERR: b""}
        self._begun: set[int | None] = set()
        self._finished = False

    def connection_made(self, chan: asyncssh.SSHClientChannel[bytes]) -> None:
        for reader in self.readers.values():
            # A reader only ever asks its transport to pause and to resume.
            reader.set_transport(cast("asyncio.Transport", chan))

    def data_received(self, data: bytes, datatype: asyncssh.DataType) -> None:
        if self._finished:
            return
        if datatype in self._begun:
            self.readers[datatype].feed_data(data)
            return
        seen = self._waiting[datatype] = self._waiting[datatype] + data
        _, found, after = seen.partition(self._token)
        verdict, ended, rest = after.partition(b"\n")
        if not found or not ended:
            self._waiting[datatype] = seen[-_LONGEST_PREAMBLE_BYTES:]
            return
        self._begun.add(datatype)
        if datatype == _STDERR and not self.preamble.done():
            self.preamble.set_result(verdict.decode("ascii", "replace").strip())
        if rest:
            self.readers[datatype].feed_data(rest)

    def eof_received(self) -> bool:
        self.stop_reading()
        return True

    def exit_status_received(self, status: int) -> None:
        self.exit_code = status
        _settle(self.exited)

    def exit_signal_received(
        self,
        signal: str,
        core_dumped: bool,  # noqa: FBT001
        msg: str,
        lang: str,
    ) -> None:
        del core_dumped, msg, lang
        self.exit_code = _signal_code(signal)
        _settle(self.exited)

    def pause_writing(self) -> None:
        self.may_write.clear()

    def resume_writing(self) -> None:
        self.may_write.set()

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        if self.exit_code is None and not self.preamble.done():
            self.preamble.set_result(_BROKEN)
        self.stop_reading()
        self.may_write.set()
        _settle(self.exited)
        _settle(self.closed)

    def stop_reading(self) -> None:
        """Let the readers end; what still comes is dropped."""
        self._finished = True
        for reader in self.readers.values():
            reader.feed_eof()
        if not self.preamble.done():
            said = b" ".join(self._waiting.values()).decode("utf-8", "replace")
            self.preamble.set_result(f"nothing {said.strip()}")


def _settle(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _signal_code(name: str) -> int:
    try:
        return -signal.Signals[f"SIG{name}"].value
    except KeyError:
        return -signal.SIGKILL


class RemoteProcess:
    """A command that runs on a host."""

    def __init__(
        self,
        connection: asyncssh.SSHClientConnection,
        channel: asyncssh.SSHClientChannel[bytes],
        session: _Session,
    ) -> None:
        self._connection = connection
        self._channel = channel
        self._session = session

    async def started(self) -> None:
        """Wait until the command runs; else say why it does not."""
        verdict, _, rest = (await asyncio.shield(self._session.preamble)).partition(" ")
        if verdict == _BROKEN:
            raise Broken
        if verdict != "ok":
            raise NotStarted(verdict, rest)

    async def write(self, data: bytes) -> None:
        """Give the command input, as fast as it takes it."""
        await self._session.may_write.wait()
        if self._channel.is_closing() or self._session.closed.done():
            raise Broken
        try:
            self._channel.write(data)
        except OSError as error:
            raise Broken from error
        await self._session.may_write.wait()

    async def give(self, data: bytes) -> None:
        """Give the command its input, all of it, and no more."""
        with contextlib.suppress(Broken):
            for start in range(0, len(data), _CHUNK_BYTES):
                await self.write(data[start : start + _CHUNK_BYTES])
            self.end_input()

    def end_input(self) -> None:
        """Say that no more input comes."""
        if not self._channel.is_closing():
            self._channel.write_eof()

    async def exit_code(self) -> int:
        """Wait for the end; a negative code is the signal that brought it."""
        await asyncio.shield(self._session.exited)
        if self._session.exit_code is None:
            raise Broken
        return self._session.exit_code

    async def said(self, on_line: OnLine | None = None) -> tuple[str, str]:
        """Wait for the end and return all of stdout and stderr; tell each line as it comes."""
        reading = asyncio.gather(*told(tuple(self._session.readers.values()), on_line))
        try:
            await asyncio.wait({self._session.exited})
            await asyncio.wait({reading}, timeout=_LAST_WORDS_S)
        finally:
            self._session.stop_reading()
        out, err = await reading
        await self.exit_code()
        return out, err

    async def read(self) -> bytes:
        """Return the next piece of stdout; nothing at its end."""
        return await self._session.readers[None].read(_CHUNK_BYTES)

    def lines(self) -> AsyncGenerator[str, None]:
        """Yield the lines of stdout as they come, however long they are."""
        return lines_of(self._session.readers[None])

    async def last_errors(self, size: int) -> str:
        """Read stderr to its end and return what it said last."""
        return await last_bytes(self._session.readers[_STDERR], size)

    async def end(self) -> None:
        """End the command and its group if it still runs; leave nothing of it on the host.

        A cancellation meanwhile cuts the politeness short, but not the ending.
        """
        ending = asyncio.ensure_future(self._end())
        hurried: asyncio.CancelledError | None = None
        while not ending.done():
            try:
                await asyncio.wait({ending})
            except asyncio.CancelledError as error:  # noqa: PERF203 - once or twice in a lifetime
                hurried = error
        if hurried is not None:
            raise hurried
        ending.result()

    async def _end(self) -> None:
        session, channel = self._session, self._channel
        try:
            if not session.preamble.done():
                await asyncio.wait({session.preamble}, timeout=_BUSY_S)
            if not session.exited.done():
                await self._end_group()
        except (OSError, asyncssh.Error, asyncio.TimeoutError):
            pass  # the connection is gone, and with it the way to the command
        channel.close()
        await asyncio.wait({session.closed}, timeout=_POLITE_S)

    async def _end_group(self) -> None:
        """End the group by another command, which does all of it by itself on the host.

        SSH has signals of its own, but sshd passes none on where root has logged in.
        """
        preamble = self._session.preamble
        verdict, _, pid = preamble.result().partition(" ") if preamble.done() else ("", "", "")
        if verdict != "ok":
            return
        line = f"exec /bin/sh -c '{END_GROUP}' sh {int(pid)}"
        ending = self._connection.run(line, encoding=None, stdin=asyncssh.DEVNULL)
        await asyncio.wait_for(ending, _BUSY_S + _POLITE_S)
        await asyncio.wait({self._session.exited}, timeout=_POLITE_S)
