"""The port `Transport` over one SSH connection, which is opened when it is first needed."""

from __future__ import annotations

import asyncio
import contextlib
import posixpath
import secrets
import tarfile
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable
from pathlib import Path
from typing import TypeVar

import asyncssh

from paceline.errors import MissingProgram, PacelineError, StorageError, TransportError
from paceline.model.command import Command, Completed, render
from paceline.model.host import Host
from paceline.ports import LaterInput, OnLine
from paceline.transports.feeding import feeding
from paceline.transports.ssh import archive, script
from paceline.transports.ssh.connection import connect
from paceline.transports.ssh.jumps import Jumps
from paceline.transports.ssh.keys import HostKeys
from paceline.transports.ssh.process import Broken, NotStarted, RemoteProcess, remote_process

_SHOWN_CHARS = 400
_STDERR_BYTES = 4000
# OpenSSH allows ten sessions on a connection; two are left for ending commands.
_SESSIONS = 8
# A host that could not be reached a moment ago is not waited for again.
_REMEMBER_FAILURE_S = 5.0
_CHANGED_WHILE_READ = ("file changed as we read it", "File removed before we read it")
_NO_NEWS = "Exiting with failure status"
T = TypeVar("T")


class SshTransport:
    """The port `Transport`, for a host that answers to SSH."""

    def __init__(self, host: Host, keys: HostKeys, jumps: Jumps | None = None) -> None:
        self._host = host
        self._keys = keys
        self._jumps = jumps or Jumps()
        self._connection: asyncssh.SSHClientConnection | None = None
        self._opening = asyncio.Lock()
        self._sessions = asyncio.Semaphore(_SESSIONS)
        self._failed: tuple[float, TransportError] | None = None

    @property
    def host(self) -> Host:
        """The host at the other end."""
        return self._host

    async def run(
        self, command: Command, *, timeout_s: float | None = 60.0, on_line: OnLine | None = None
    ) -> Completed:
        """Run a command to its end; one that takes too long is ended with its process group."""

        async def work() -> Completed:
            async with self._process(command) as process:
                out, err = await process.said(on_line)
                return Completed(command, await process.exit_code(), out, err)

        return await self._within(timeout_s, work(), f"`{_shown(command)}`")

    async def stream(
        self, command: Command, *, stdin: LaterInput | None = None
    ) -> AsyncGenerator[str, None]:
        """Yield the lines of a command's output; if it fails, end with its last words."""
        async with (
            self._process(command, feed=stdin is None) as process,
            feeding(stdin, process.give),
        ):
            listening = asyncio.ensure_future(process.last_errors(_STDERR_BYTES))
            try:
                async with contextlib.aclosing(process.lines()) as lines:
                    async for line in lines:
                        yield line
                exit_code = await process.exit_code()
                if exit_code != 0:
                    words = (await listening).strip().splitlines()[-1:] or ["it said nothing"]
                    raise TransportError(
                        f"`{_shown(command)}` ended with exit code {exit_code}: {words[0]}",
                        host=self._host.name,
                    )
            finally:
                listening.cancel()

    async def put(self, source: Path, target: str, *, timeout_s: float | None = 600.0) -> None:
        """Copy a file to exactly `target`, or what is in a folder into the folder `target`."""
        if not source.exists():
            raise StorageError(f"there is no {source}", host=self._host.name)
        target = posixpath.normpath(target)
        folder, draft = posixpath.dirname(target) or ".", _draft_of(target)
        if source.is_dir():
            command, name = script.shell(script.UNPACK_FOLDER, target), "."
        else:
            command = script.shell(script.UNPACK_FILE, target, folder, draft)
            name = posixpath.basename(draft)

        async def work() -> None:
            async with self._process(command, feed=False) as process:
                with contextlib.suppress(Broken):  # the host says why
                    await archive.pack(process, source, name)
                await self._require_success(process, target)

        await self._copy(timeout_s, work(), target)

    async def put_bytes(
        self, data: bytes, target: str, *, mode: int = 0o644, timeout_s: float | None = 60.0
    ) -> None:
        """Write a file, atomically, making its folder."""
        folder, draft = posixpath.dirname(target) or ".", _draft_of(target)
        words = (target, folder, draft, f"{mode:o}", str(len(data)))
        command = script.shell(script.WRITE_FILE, *words, stdin=data)

        async def work() -> None:
            async with self._process(command) as process:
                await self._require_success(process, target)

        await self._copy(timeout_s, work(), target)

    async def get(self, source: str, target: Path, *, timeout_s: float | None = 600.0) -> None:
        """Copy a file to exactly `target`, or what is in a folder into the folder `target`."""
        source = posixpath.normpath(source)
        words = (source, posixpath.dirname(source) or ".", posixpath.basename(source))

        async def work() -> None:
            async with self._process(script.shell(script.PACK, *words)) as process:
                with contextlib.suppress(Broken):
                    await archive.unpack(process, target)
                await self._require_success(process, source)

        await self._copy(timeout_s, work(), source)

    async def host_key(self) -> str:
        """Return the public key that the host has shown, and that we have accepted."""
        key = (await self._open()).get_server_host_key()
        if key is None:
            raise TransportError("it has shown no key", host=self._host.name)
        return key.export_public_key().decode().strip()

    async def connection(self) -> asyncssh.SSHClientConnection:
        """Return the open connection, for those who talk to it by themselves."""
        return await self._open()

    async def tunnel(self, port: int) -> int:
        """Return a port on our own loopback that leads to `port` on the host's loopback."""
        connection = await self._open()
        try:
            listener = await connection.forward_local_port("127.0.0.1", 0, "127.0.0.1", port)
        except (OSError, asyncssh.Error) as error:
            raise TransportError(
                f"no tunnel to port {port}: {error}", host=self._host.name
            ) from error
        return listener.get_port()

    async def close(self) -> None:
        """Let go of the host; calling it twice is harmless."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
            with contextlib.suppress(asyncio.TimeoutError, OSError, asyncssh.Error):
                await asyncio.wait_for(connection.wait_closed(), 2.0)

    async def _open(self) -> asyncssh.SSHClientConnection:
        async with self._opening:
            if self._connection is not None and not self._connection.is_closed():
                return self._connection
            if self._failed and time.monotonic() - self._failed[0] < _REMEMBER_FAILURE_S:
                failed = self._failed[1]
                raise type(failed)(failed.message, hint=failed.hint, host=failed.host)
            try:
                self._connection = await connect(self._host, self._keys, self._jumps)
            except TransportError as error:
                self._failed = (time.monotonic(), error)
                raise
            self._failed = None
            return self._connection

    @contextlib.asynccontextmanager
    async def _process(
        self, command: Command, *, feed: bool = True
    ) -> AsyncIterator[RemoteProcess]:
        async with self._sessions:
            connection = await self._open()
            try:
                async with remote_process(connection, command, feed=feed) as process:
                    yield process
            except NotStarted as error:
                raise self._not_started(command, error) from error
            except Broken as error:
                raise TransportError(
                    f"the connection broke while `{_shown(command)}` ran",
                    host=self._host.name,
                    hint="is the host still on, and the network there?",
                ) from error
            except (asyncssh.Error, ValueError) as error:
                raise TransportError(
                    f"`{_shown(command)}` cannot be started: {error}", host=self._host.name
                ) from error

    def _not_started(self, command: Command, error: NotStarted) -> PacelineError:
        host = self._host.name
        if error.what == "program":
            return MissingProgram(
                f"there is no program {command.argv[0]!r}",
                host=host,
                hint="Install it there, or correct PATH or its name.",
            )
        if error.what == "folder":
            return TransportError(f"the folder {command.cwd} cannot be entered", host=host)
        said = f": {error.said.splitlines()[-1]}" if error.said else ""
        return TransportError(
            f"its shell did not run `{_shown(command)}`{said}",
            host=host,
            hint="may this user run commands there?",
        )

    async def _require_success(self, process: RemoteProcess, path: str) -> None:
        _, errors = await process.said()
        code = await process.exit_code()
        lines = [line for line in errors.splitlines() if line.strip()]
        # tar says so of logs that grow while it reads them; what it has read is good.
        harmless = lines and all(line.endswith(_CHANGED_WHILE_READ) for line in lines)
        if code == 0 or (code == 1 and harmless):
            return
        full = any(word in errors for word in ("No space left", "quota", "Wrote only"))
        # tar ends with words that say no more than that it has failed.
        telling = [line for line in lines if _NO_NEWS not in line] or lines
        said = telling[-1] if telling else f"exit code {code}"
        said = "No space left on device" if full and "quota" not in said else said
        raise StorageError(
            f"{path} cannot be copied: {said}",
            host=self._host.name,
            hint="Free some space there, or choose a folder on another disk." if full else None,
        )

    async def _copy(self, timeout_s: float | None, work: Awaitable[None], path: str) -> None:
        try:
            await self._within(timeout_s, work, f"copying {path}")
        except tarfile.TarError as error:
            raise TransportError(
                f"{path} arrived damaged: {error}", host=self._host.name
            ) from error
        except OSError as error:
            where = error.filename or path
            raise StorageError(
                f"{where} cannot be copied: {error.strerror or error}", host=self._host.name
            ) from error

    async def _within(self, timeout_s: float | None, work: Awaitable[T], what: str) -> T:
        try:
            return await asyncio.wait_for(work, timeout_s)
        except asyncio.TimeoutError as error:
            raise TransportError(
                f"{what} took longer than {timeout_s:g} s and was ended",
                host=self._host.name,
                hint="Is the host overloaded, or does the command wait for something?",
            ) from error


def _draft_of(target: str) -> str:
    folder, name = posixpath.split(target)
    return posixpath.join(folder, f".{name}.{secrets.token_hex(4)}.part")


def _shown(command: Command) -> str:
    """Return a command as a person would type it, as far as a message can hold it."""
    line = render(command)
    return line if len(line) <= _SHOWN_CHARS else f"{line[:_SHOWN_CHARS]} …"
