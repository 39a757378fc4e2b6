"""A host that exists in memory, for tests that need a transport and no processes."""

from __future__ import annotations

import asyncio
import contextlib
import posixpath
import stat
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from paceline.errors import MissingProgram, StorageError, TransportError
from paceline.model.command import Command, Completed, render
from paceline.model.host import Host
from paceline.ports import LaterInput, OnLine

Program = Callable[["FakeProcess"], Awaitable[int]]


@dataclass(frozen=True)
class FakeFile:
    """A file on a fake host."""

    data: bytes
    mode: int = 0o644


@dataclass
class FakeHost:
    """What a fake host has: files by their absolute paths, folders, programs, processes."""

    files: dict[str, FakeFile] = field(default_factory=dict)
    folders: set[str] = field(default_factory=lambda: {"/"})
    programs: dict[str, Program] = field(default_factory=dict)
    running: list[Command] = field(default_factory=list)
    history: list[Command] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=lambda: {"PATH": "/bin"})

    def make_folder(self, path: str) -> None:
        """Make a folder and those above it."""
        if path in self.files:
            raise StorageError(f"{path} is a file")
        if path not in self.folders:
            self.make_folder(posixpath.dirname(path))
            self.folders.add(path)

    def write(self, path: str, file: FakeFile) -> None:
        """Write a file, making its folder."""
        self.make_folder(posixpath.dirname(path))
        if path in self.folders:
            raise StorageError(f"{path} is a folder")
        self.files[path] = file

    def below(self, folder: str) -> list[str]:
        """Return the paths of all that lies below a folder, the outer before the inner."""
        start = folder.rstrip("/") + "/"
        return sorted(path for path in {*self.files, *self.folders} if path.startswith(start))


class FakeProcess:
    """A program's view of its surroundings on a fake host."""

    def __init__(self, host: FakeHost, command: Command) -> None:
        self.host = host
        self.argv = command.argv
        self.env: Mapping[str, str] = {**host.environment, **command.plain_env()}
        self.cwd = command.cwd or "/"
        self.stdin = command.stdin or b""
        self.errors = b""
        # Bounded, so that a talkative program waits for its reader as a real one does.
        self.output: asyncio.Queue[bytes] = asyncio.Queue(maxsize=16)

    async def say(self, data: bytes) -> None:
        """Write to stdout."""
        await self.output.put(data)

    def complain(self, text: str) -> None:
        """Write to stderr."""
        self.errors += text.encode()


class FakeTransport:
    """The port `Transport`, for a fake host; it passes the contract suite of transports."""

    def __init__(self, host: Host, machine: FakeHost | None = None) -> None:
        self._host = host
        self.machine = FakeHost() if machine is None else machine
        self.closed = False

    @property
    def host(self) -> Host:
        """The host at the other end."""
        return self._host

    async def run(
        self, command: Command, *, timeout_s: float | None = 60.0, on_line: OnLine | None = None
    ) -> Completed:
        """Run a command to its end."""
        async with self._process(command) as (process, ended):
            try:
                out = await asyncio.wait_for(_all(process, ended), timeout_s)
            except asyncio.TimeoutError as error:
                raise TransportError(
                    f"`{render(command)}` took longer than {timeout_s:g} s", host=self._host.name
                ) from error
            said = {
                "stdout": out.decode("utf-8", "replace"),
                "stderr": process.errors.decode("utf-8", "replace"),
            }
            if on_line is not None:
                for stream, text in said.items():
                    for line in text.splitlines():
                        on_line(stream, line)
            return Completed(command, ended.result(), said["stdout"], said["stderr"])

    async def stream(
        self, command: Command, *, stdin: LaterInput | None = None
    ) -> AsyncGenerator[str, None]:
        """Yield the lines of a command's output."""
        if stdin is not None:
            command = replace(command, stdin=await stdin())
        async with self._process(command) as (process, ended):
            begun = b""
            async with contextlib.aclosing(_pieces(process, ended)) as pieces:
                async for piece in pieces:
                    *whole, begun = (begun + piece).split(b"\n")
                    for line in whole:
                        yield line.decode("utf-8", "replace")
            if begun:
                yield begun.decode("utf-8", "replace")
            if ended.result() != 0:
                words = process.errors.decode("utf-8", "replace").strip()
                raise TransportError(
                    f"`{render(command)}` ended with exit code {ended.result()}: {words}",
                    host=self._host.name,
                )

    async def put(self, source: Path, target: str, *, timeout_s: float | None = 600.0) -> None:
        """Copy a file or what is in a folder to the host."""
        del timeout_s
        try:
            if not source.is_dir():
                self._put_file(source, target)
                return
            self.machine.make_folder(target)
            for path in sorted(source.rglob("*")):
                place = f"{target}/{path.relative_to(source).as_posix()}"
                if path.is_dir():
                    self.machine.make_folder(place)
                else:
                    self._put_file(path, place)
        except OSError as error:
            raise StorageError(f"{source} cannot be read", host=self._host.name) from error

    def _put_file(self, source: Path, target: str) -> None:
        mode = stat.S_IMODE(source.stat().st_mode)
        self.machine.write(target, FakeFile(source.read_bytes(), mode))

    async def put_bytes(
        self, data: bytes, target: str, *, mode: int = 0o644, timeout_s: float | None = 60.0
    ) -> None:
        """Write a file on the host."""
        del timeout_s
        self.machine.write(target, FakeFile(data, mode))

    async def get(self, source: str, target: Path, *, timeout_s: float | None = 600.0) -> None:
        """Copy a file or what is in a folder from the host."""
        del timeout_s
        if source in self.machine.files:
            target.parent.mkdir(parents=True, exist_ok=True)
            self._get_file(source, target)
            return
        if source not in self.machine.folders:
            raise StorageError(f"there is no {source}", host=self._host.name)
        target.mkdir(parents=True, exist_ok=True)
        for path in self.machine.below(source):
            place = target / posixpath.relpath(path, source)
            if path in self.machine.folders:
                place.mkdir(exist_ok=True)
            else:
                self._get_file(path, place)

    def _get_file(self, source: str, target: Path) -> None:
        file = self.machine.files[source]
        target.write_bytes(file.data)
        target.chmod(file.mode)

    async def tunnel(self, port: int) -> int:
        """Return the port itself: what listens on a fake host listens here."""
        return port

    async def close(self) -> None:
        """Let go of the host."""
        self.closed = True

    @contextlib.asynccontextmanager
    async def _process(
        self, command: Command
    ) -> AsyncGenerator[tuple[FakeProcess, asyncio.Task[int]], None]:
        name = self._host.name
        program = {**PROGRAMS, **self.machine.programs}.get(command.argv[0])
        if program is None:
            raise MissingProgram(f"there is no program {command.argv[0]!r}", host=name)
        if command.cwd is not None and command.cwd not in self.machine.folders:
            raise TransportError(f"the folder {command.cwd} cannot be entered", host=name)
        process = FakeProcess(self.machine, command)
        self.machine.history.append(command)
        self.machine.running.append(command)
        task = asyncio.ensure_future(program(process))
        try:
            yield process, task
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            self.machine.running.remove(command)


async def _pieces(process: FakeProcess, ended: asyncio.Task[int]) -> AsyncGenerator[bytes, None]:
    """Yield what a process says until it has ended and all is said."""
    while True:
        saying = asyncio.ensure_future(process.output.get())
        try:
            await asyncio.wait({saying, ended}, return_when=asyncio.FIRST_COMPLETED)
            if not saying.done() and process.output.empty():
                return
            yield await saying
        finally:
            saying.cancel()


async def _all(process: FakeProcess, ended: asyncio.Task[int]) -> bytes:
    return b"".join([piece async for piece in _pieces(process, ended)])


async def _echo(process: FakeProcess) -> int:
    await process.say(" ".join(process.argv[1:]).encode() + b"\n")
    return 0


async def _cat(process: FakeProcess) -> int:
    if len(process.argv) == 1:
        await process.say(process.stdin)
    for path in process.argv[1:]:
        file = process.host.files.get(posixpath.join(process.cwd, path))
        if file is None:
            process.complain(f"cat: {path}: No such file or directory\n")
            return 1
        await process.say(file.data)
    return 0


async def _printenv(process: FakeProcess) -> int:
    value = process.env.get(process.argv[1])
    if value is not None:
        await process.say(f"{value}\n".encode())
    return 0 if value is not None else 1


async def _pwd(process: FakeProcess) -> int:
    await process.say(f"{process.cwd}\n".encode())
    return 0


async def _seq(process: FakeProcess) -> int:
    first, last = (int(word) for word in process.argv[1:])
    for number in range(first, last + 1):
        await process.say(f"{number}\n".encode())
    return 0


async def _sleep(process: FakeProcess) -> int:
    await asyncio.sleep(float(process.argv[1]))
    return 0


async def _yes(process: FakeProcess) -> int:
    while True:
        await process.say(" ".join(process.argv[1:]).encode() + b"\n")


PROGRAMS: Mapping[str, Program] = {
    "cat": _cat,
    "echo": _echo,
    "printenv": _printenv,
    "pwd": _pwd,
    "seq": _seq,
    "sleep": _sleep,
    "yes": _yes,
}
