"""This machine as a host: commands are child processes, copies are copies of files."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import shutil
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from pathlib import Path

from paceline.app.facts import host_facts
from paceline.errors import MissingProgram, PacelineError, StorageError, TransportError
from paceline.model.command import Command, Completed, render
from paceline.model.host import Host, HostFacts
from paceline.ports import LaterInput, OnLine
from paceline.supervisor.facts import collect
from paceline.transports.child import ChildProcess, child_process
from paceline.transports.copying import CalledOff, Copying
from paceline.transports.feeding import feeding

_SHOWN_CHARS = 400
_STDERR_BYTES = 4000


class LocalTransport:
    """The port `Transport`, for the machine that we are on."""

    def __init__(self, host: Host) -> None:
        self._host = host

    @property
    def host(self) -> Host:
        """The host at the other end."""
        return self._host

    async def run(
        self, command: Command, *, timeout_s: float | None = 60.0, on_line: OnLine | None = None
    ) -> Completed:
        """Run a command to its end; one that takes too long is ended with its process group."""
        async with self._child(command) as child:
            try:
                out, err = await asyncio.wait_for(child.said(on_line), timeout_s)
            except asyncio.TimeoutError as error:
                raise TransportError(
                    f"`{_shown(command)}` took longer than {timeout_s:g} s and was ended",
                    host=self._host.name,
                    hint="Is the machine overloaded, or does the command wait for something?",
                ) from error
            return Completed(command, await child.exit_code(), out, err)

    async def stream(
        self, command: Command, *, stdin: LaterInput | None = None
    ) -> AsyncGenerator[str, None]:
        """Yield the lines of a command's output; if it fails, end with its last words."""
        async with (
            self._child(command, feed=stdin is None) as child,
            feeding(stdin, child.give),
        ):
            listening = asyncio.ensure_future(child.last_errors(_STDERR_BYTES))
            try:
                async with contextlib.aclosing(child.lines()) as lines:
                    async for line in lines:
                        yield line
                exit_code = await child.exit_code()
                if exit_code != 0:
                    raise self._failed(command, exit_code, await listening)
            finally:
                listening.cancel()

    async def put(self, source: Path, target: str, *, timeout_s: float | None = 600.0) -> None:
        """Copy a file to exactly `target`, or what is in a folder into the folder `target`."""
        copying = Copying()
        await self._copy(copying, lambda: copying.copy(source, Path(target)), target, timeout_s)

    async def put_bytes(
        self, data: bytes, target: str, *, mode: int = 0o644, timeout_s: float | None = 60.0
    ) -> None:
        """Write a file, atomically, making its folder."""
        copying = Copying()
        path = Path(target)
        await self._copy(copying, lambda: copying.write(data, path, mode), target, timeout_s)

    async def get(self, source: str, target: Path, *, timeout_s: float | None = 600.0) -> None:
        """Copy a file to exactly `target`, or what is in a folder into the folder `target`."""
        copying = Copying()
        await self._copy(
            copying, lambda: copying.copy(Path(source), target), str(target), timeout_s
        )

    async def tunnel(self, port: int) -> int:
        """Return the port itself: the host's loopback is ours."""
        return port

    async def close(self) -> None:
        """Let go of nothing: there is no connection."""

    async def own_facts(self, python: str) -> HostFacts | None:
        """Return this machine's facts at once if `python` is the interpreter that we run in."""
        if shutil.which(python) != sys.executable:
            return None
        return host_facts(await asyncio.to_thread(collect))

    @contextlib.asynccontextmanager
    async def _child(self, command: Command, *, feed: bool = True) -> AsyncIterator[ChildProcess]:
        async with contextlib.AsyncExitStack() as stack:
            try:
                child = await stack.enter_async_context(child_process(command, feed=feed))
            except (OSError, ValueError) as error:
                raise self._not_started(command, error) from error
            yield child

    def _not_started(self, command: Command, error: OSError | ValueError) -> PacelineError:
        host, program = self._host.name, command.argv[0]
        if isinstance(error, OSError) and command.cwd is not None and error.filename == command.cwd:
            return TransportError(
                f"the folder {command.cwd} cannot be entered: {error.strerror}", host=host
            )
        if isinstance(error, FileNotFoundError):
            return MissingProgram(
                f"there is no program {program!r}",
                host=host,
                hint="Install it there, or correct PATH or its name.",
            )
        if isinstance(error, PermissionError):
            return MissingProgram(f"{program!r} may not be executed", host=host)
        return TransportError(f"`{_shown(command)}` cannot be started: {error}", host=host)

    def _failed(self, command: Command, exit_code: int, errors: str) -> TransportError:
        words = errors.strip().splitlines()[-1:] or ["it said nothing"]
        return TransportError(
            f"`{_shown(command)}` ended with exit code {exit_code}: {words[0]}",
            host=self._host.name,
        )

    async def _copy(
        self, copying: Copying, work: Callable[[], None], path: str, timeout_s: float | None
    ) -> None:
        """Do a piece of copying in a thread; wait no longer than allowed, and never leave it."""
        task = asyncio.ensure_future(asyncio.to_thread(work))
        try:
            await asyncio.wait_for(asyncio.shield(task), timeout_s)
        except asyncio.TimeoutError as error:
            raise TransportError(
                f"copying {path} took longer than {timeout_s:g} s and was called off",
                host=self._host.name,
            ) from error
        except OSError as error:
            raise self._not_copied(error, path) from error
        finally:
            copying.call_off()
            with contextlib.suppress(CalledOff, OSError):
                await task

    def _not_copied(self, error: OSError, path: str) -> StorageError:
        if error.errno in {errno.ENOSPC, errno.EDQUOT}:
            return StorageError(
                f"the disk is full: {path} cannot be written",
                host=self._host.name,
                hint="Free some space, or choose a folder on another disk.",
            )
        where = error.filename or path
        return StorageError(
            f"{where} cannot be copied: {error.strerror or error}", host=self._host.name
        )


def _shown(command: Command) -> str:
    """Return a command as a person would type it, as far as a message can hold it."""
    line = render(command)
    return line if len(line) <= _SHOWN_CHARS else f"{line[:_SHOWN_CHARS]} …"
