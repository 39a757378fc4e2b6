"""What every transport promises. A new adapter joins by a line in `FACTORIES`.

The commands are ones that every host has: cat, echo, printenv, pwd, seq, sleep, yes.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from paceline.errors import MissingProgram, StorageError, TransportError
from paceline.model.command import Command, Secret
from paceline.model.host import Host
from paceline.ports import Transport
from paceline.rehearsal.hosts import SshHost
from paceline.supervisor import procfs
from paceline.supervisor.files import read_tail
from paceline.transports.local import LocalTransport
from paceline.transports.ssh import SshTransport
from tests.fakes.transport import FakeTransport
from tests.lab import host_noun, no_keys

HOST = Host("node-7", "127.0.0.1", "127.0.0.1")
PATIENCE_S = 30.0
GREETING = b"hello from the host"
GREET_ONCE = (
    "import socket; s = socket.create_server(('127.0.0.1', 0)); "
    "print(s.getsockname()[1], flush=True); c = s.accept()[0]; "
    f"c.sendall({GREETING!r}); c.close()"
)


@dataclass(frozen=True)
class Subject:
    """A transport under test, a folder on its host, and a view of what runs there.

    `greeter` listens on the host's loopback, at the port that it gives, and says GREETING.
    """

    transport: Transport
    scratch: str
    count_running: Callable[[str], int]
    greeter: Callable[[], AbstractContextManager[int]]


def _count_here(word: str) -> int:
    """Count the processes of this machine that have a word among their arguments."""
    return sum(
        f"{word}\0".encode() in read_tail(f"/proc/{entry.pid}/cmdline", 10**6)
        for entry in procfs.all_entries()
        if entry.alive
    )


@contextlib.contextmanager
def _greeter_here() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def greet() -> None:
            with server.accept()[0] as caller:
                caller.sendall(GREETING)

        threading.Thread(target=greet, daemon=True).start()
        yield server.getsockname()[1]


@contextlib.contextmanager
def _greeter_on(host: SshHost) -> Iterator[int]:
    argv = host.lab.inside((sys.executable, "-c", GREET_ONCE))
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        yield int(server.stdout.readline())
        server.kill()


@contextlib.asynccontextmanager
async def _local(_request: pytest.FixtureRequest) -> AsyncIterator[Subject]:
    with tempfile.TemporaryDirectory() as scratch:
        folder = os.path.realpath(scratch)
        yield Subject(LocalTransport(HOST), folder, _count_here, _greeter_here)


@contextlib.asynccontextmanager
async def _ssh(request: pytest.FixtureRequest) -> AsyncIterator[Subject]:
    host: SshHost = request.getfixturevalue("lab")[0]
    with tempfile.TemporaryDirectory() as scratch:
        folder = os.path.realpath(scratch)
        transport = SshTransport(host_noun(host), no_keys(host.folder))
        yield Subject(transport, folder, _count_here, lambda: _greeter_on(host))


@contextlib.asynccontextmanager
async def _fake(_request: pytest.FixtureRequest) -> AsyncIterator[Subject]:
    transport = FakeTransport(HOST)
    machine = transport.machine
    machine.make_folder("/home/scratch")
    yield Subject(
        transport,
        "/home/scratch",
        lambda word: sum(word in command.argv for command in machine.running),
        _greeter_here,
    )


Factory = Callable[[pytest.FixtureRequest], AbstractAsyncContextManager[Subject]]
FACTORIES: Mapping[str, Factory] = {"local": _local, "fake": _fake, "ssh": _ssh}

Check = Callable[[Subject], Awaitable[None]]
Prove = Callable[[Check], None]


@pytest.fixture(
    params=["fake", "local", pytest.param("ssh", marks=pytest.mark.e2e)],
)
def prove(request: pytest.FixtureRequest) -> Prove:
    """Return what carries out a check against one transport."""
    if request.param == "ssh":
        request.getfixturevalue("lab")  # skips where no lab can be made

    async def carry_out(check: Check) -> None:
        async with FACTORIES[request.param](request) as subject:
            assert isinstance(subject.transport.host, Host)
            await check(subject)
            await subject.transport.close()
            await subject.transport.close()

    return lambda check: asyncio.run(carry_out(check))


async def none_running(subject: Subject, word: str) -> None:
    """Wait until no command with this word runs on the host."""
    for _ in range(int(PATIENCE_S / 0.05)):
        if subject.count_running(word) == 0:
            return
        await asyncio.sleep(0.05)
    raise AssertionError(f"{word} is still running")


async def one_running(subject: Subject, word: str) -> None:
    """Wait until a command with this word runs on the host."""
    for _ in range(int(PATIENCE_S / 0.05)):
        if subject.count_running(word) > 0:
            return
        await asyncio.sleep(0.05)
    raise AssertionError(f"{word} does not run")


def unique_seconds() -> str:
    """Return a long time that no other command waits for."""
    return f"1000.{uuid.uuid4().int % 10**9:09d}"


def command(*argv: str, **options: Any) -> Command:
    """Return a command."""
    return Command(argv, **options)


def test_output_and_exit_code_come_back(prove: Prove) -> None:
    """A command that succeeds returns what it said and zero."""

    async def check(subject: Subject) -> None:
        done = await subject.transport.run(command("echo", "hello", "world"))
        assert (done.exit_code, done.stdout, done.stderr) == (0, "hello world\n", "")
        assert done.ok
        assert done.command == command("echo", "hello", "world")

    prove(check)


def test_a_failing_command_is_a_result(prove: Prove) -> None:
    """A non-zero exit is no error of the transport; its words are on stderr."""

    async def check(subject: Subject) -> None:
        done = await subject.transport.run(command("cat", f"{subject.scratch}/none"))
        assert done.exit_code == 1
        assert done.stdout == ""
        assert "none" in done.stderr

    prove(check)


def test_lines_are_told_beside_the_result(prove: Prove) -> None:
    """Whoever listens hears each line with its stream, and the result is still whole."""

    async def check(subject: Subject) -> None:
        told: list[tuple[str, str]] = []

        def listen(stream: str, line: str) -> None:
            told.append((stream, line))

        done = await subject.transport.run(command("seq", "1", "3000"), on_line=listen)
        assert told == [("stdout", str(number)) for number in range(1, 3001)]
        assert done.stdout == "".join(f"{number}\n" for number in range(1, 3001))
        told.clear()
        missing = f"{subject.scratch}/none"
        done = await subject.transport.run(command("cat", missing), on_line=listen)
        assert done.exit_code == 1
        assert [stream for stream, _ in told] == ["stderr"]
        assert "none" in told[0][1]

    prove(check)


def test_arguments_arrive_as_they_are(prove: Prove) -> None:
    """No shell looks at them on the way."""
    odd = ("$HOME", "`id`", "a  b", "'", '"', "*", ";", "\\", "new\nline", "é€𝄞", "-n"[1:], "")

    async def check(subject: Subject) -> None:
        done = await subject.transport.run(command("echo", *odd))
        assert done.stdout == " ".join(odd) + "\n"

    prove(check)


def test_input_is_given_and_ends(prove: Prove) -> None:
    """A command reads what it was given, of any size; without input it reads nothing."""
    data = bytes(range(65, 91)) * 20_000

    async def check(subject: Subject) -> None:
        assert (await subject.transport.run(command("cat", stdin=data))).stdout == data.decode()
        assert (await subject.transport.run(command("cat", stdin=b""))).stdout == ""
        assert (await subject.transport.run(command("cat"))).stdout == ""

    prove(check)


def test_variables_are_added_to_those_of_the_host(prove: Prove) -> None:
    """A command has its own variables, secrets among them, and the host's."""
    env = {"PACELINE_A": "a b", "PACELINE_B": Secret("s3cret")}

    async def check(subject: Subject) -> None:
        for name, value in {"PACELINE_A": "a b\n", "PACELINE_B": "s3cret\n"}.items():
            assert (await subject.transport.run(command("printenv", name, env=env))).stdout == value
        assert (await subject.transport.run(command("printenv", "PATH", env=env))).ok

    prove(check)


def test_a_command_runs_in_its_folder(prove: Prove) -> None:
    """The folder is entered first; one that is not there is an error that names it."""

    async def check(subject: Subject) -> None:
        done = await subject.transport.run(command("pwd", cwd=subject.scratch))
        assert done.stdout == f"{subject.scratch}\n"
        with pytest.raises(TransportError, match="/no/such/folder"):
            await subject.transport.run(command("pwd", cwd="/no/such/folder"))

    prove(check)


def test_a_missing_program_is_named(prove: Prove) -> None:
    """A program that is not there is an error of its own, which bears the host."""

    async def check(subject: Subject) -> None:
        with pytest.raises(MissingProgram, match="no-such-program") as caught:
            await subject.transport.run(command("no-such-program", "x"))
        assert caught.value.host == subject.transport.host.name
        with pytest.raises(MissingProgram, match="no-such-program"):
            await subject.transport.stream(command("no-such-program")).__anext__()

    prove(check)


def test_a_command_that_takes_too_long_is_ended(prove: Prove) -> None:
    """The error names the host, the command and the limit, and shows no secret."""
    seconds = unique_seconds()
    slow = command("sleep", seconds, env={"TOKEN": Secret("s3cret")})

    async def check(subject: Subject) -> None:
        with pytest.raises(TransportError, match=f"sleep {seconds}.* 0.2 s") as caught:
            await subject.transport.run(slow, timeout_s=0.2)
        assert caught.value.host == subject.transport.host.name
        assert "s3cret" not in str(caught.value)
        await none_running(subject, seconds)

    prove(check)


def test_a_command_that_nobody_waits_for_is_ended(prove: Prove) -> None:
    """Cancelling the call ends the command."""
    seconds = unique_seconds()

    async def check(subject: Subject) -> None:
        call = asyncio.ensure_future(subject.transport.run(command("sleep", seconds)))
        await one_running(subject, seconds)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await none_running(subject, seconds)

    prove(check)


def test_much_output_is_complete(prove: Prove) -> None:
    """More than any buffer holds arrives whole and in order."""
    text = "".join(f"{number}\n" for number in range(1, 50_001))

    async def check(subject: Subject) -> None:
        assert (await subject.transport.run(command("seq", "1", "50000"))).stdout == text

    prove(check)


def test_output_that_is_no_text_is_survived(prove: Prove) -> None:
    """Bytes that are no UTF-8 are replaced."""

    async def check(subject: Subject) -> None:
        path = f"{subject.scratch}/bytes"
        await subject.transport.put_bytes(b"a\xff\xfeb\n", path)
        assert (await subject.transport.run(command("cat", path))).stdout == "a\ufffd\ufffdb\n"
        assert [line async for line in subject.transport.stream(command("cat", path))] == [
            "a\ufffd\ufffdb"
        ]

    prove(check)


def test_commands_run_side_by_side(prove: Prove) -> None:
    """Many calls at once do not mix."""

    async def check(subject: Subject) -> None:
        calls = [subject.transport.run(command("echo", str(number))) for number in range(20)]
        done = await asyncio.gather(*calls)
        assert [item.stdout for item in done] == [f"{number}\n" for number in range(20)]

    prove(check)


def test_a_stream_yields_every_line(prove: Prove) -> None:
    """Lines come without their ends, in order; the last needs no line end; length is free."""

    async def check(subject: Subject) -> None:
        numbers = [line async for line in subject.transport.stream(command("seq", "1", "5000"))]
        assert numbers == [str(number) for number in range(1, 5001)]
        path = f"{subject.scratch}/lines"
        await subject.transport.put_bytes("é\n\n{}\nlast".format("x" * 300_000).encode(), path)
        lines = [line async for line in subject.transport.stream(command("cat", path))]
        assert lines == ["é", "", "x" * 300_000, "last"]

    prove(check)


def test_a_stream_is_given_its_input(prove: Prove) -> None:
    """A streamed command reads what it was given."""

    async def check(subject: Subject) -> None:
        stream = subject.transport.stream(command("cat", stdin=b"one\ntwo\n"))
        assert [line async for line in stream] == ["one", "two"]

    prove(check)


def test_the_input_of_a_stream_may_come_later(prove: Prove) -> None:
    """It arrives whole; a command whose input never comes ends when its stream is closed."""

    async def check(subject: Subject) -> None:
        data = b"line\n" * 100_000

        async def later() -> bytes:
            await asyncio.sleep(0.05)
            return data

        stream = subject.transport.stream(command("cat"), stdin=later)
        assert len([line async for line in stream]) == 100_000

        async def never() -> bytes:
            raise ConnectionError

        lines = subject.transport.stream(command("cat"), stdin=never)
        waiting = asyncio.ensure_future(lines.__anext__())
        await asyncio.sleep(0.2)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        await lines.aclose()

    prove(check)


def test_closing_a_stream_ends_its_command(prove: Prove) -> None:
    """Lines come while the command runs; whoever has enough closes the stream, and it ends."""
    word = uuid.uuid4().hex

    async def check(subject: Subject) -> None:
        async with contextlib.aclosing(subject.transport.stream(command("yes", word))) as lines:
            assert [await lines.__anext__() for _ in range(3)] == [word] * 3
            assert subject.count_running(word) == 1
        await none_running(subject, word)

    prove(check)


def test_cancelling_a_reader_ends_its_command(prove: Prove) -> None:
    """A reader that is cancelled while it waits leaves nothing behind."""
    seconds = unique_seconds()

    async def check(subject: Subject) -> None:
        async def read() -> None:
            async with contextlib.aclosing(
                subject.transport.stream(command("sleep", seconds))
            ) as lines:
                await lines.__anext__()

        reader = asyncio.ensure_future(read())
        await one_running(subject, seconds)
        reader.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reader
        await none_running(subject, seconds)

    prove(check)


def test_a_stream_that_fails_says_so(prove: Prove) -> None:
    """Output that ends because the command failed is not taken for complete."""

    async def check(subject: Subject) -> None:
        with pytest.raises(TransportError, match=r"exit code 1.*none") as caught:
            async for _ in subject.transport.stream(command("cat", f"{subject.scratch}/none")):
                pass
        assert caught.value.host == subject.transport.host.name

    prove(check)


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o755])
def test_bytes_become_a_file(prove: Prove, tmp_path: Path, mode: int) -> None:
    """The folder is made, the mode is kept, and a second write replaces the first."""

    async def check(subject: Subject) -> None:
        path = f"{subject.scratch}/a/b/file"
        await subject.transport.put_bytes(b"old and longer", path)
        await subject.transport.put_bytes(b"new\x00\xff", path, mode=mode)
        await subject.transport.get(path, tmp_path / "back")
        assert (tmp_path / "back").read_bytes() == b"new\x00\xff"
        assert stat.S_IMODE((tmp_path / "back").stat().st_mode) == mode
        await subject.transport.get(f"{subject.scratch}/a/b", tmp_path / "folder")
        assert [item.name for item in (tmp_path / "folder").iterdir()] == ["file"], "no drafts"

    prove(check)


def test_a_file_goes_there_and_back(prove: Prove, tmp_path: Path) -> None:
    """Content and mode survive; folders are made at both ends; what was there is replaced."""
    source = tmp_path / "source"
    source.write_bytes(os.urandom(3_000_000))
    source.chmod(0o750)

    async def check(subject: Subject) -> None:
        path = f"{subject.scratch}/deep/er/copy"
        await subject.transport.put_bytes(b"in the way", path)
        await subject.transport.put(source, path)
        back = tmp_path / "x" / "y" / "back"
        await subject.transport.get(path, back)
        await subject.transport.get(path, back)
        assert back.read_bytes() == source.read_bytes()
        assert stat.S_IMODE(back.stat().st_mode) == 0o750

    prove(check)


def test_a_folder_goes_there_and_back(prove: Prove, tmp_path: Path) -> None:
    """What is in a folder is added to what is in the target, with empty folders."""
    source = tmp_path / "source"
    (source / "sub" / "empty").mkdir(parents=True)
    (source / "a").write_text("a")
    (source / "sub" / "run").write_text("run")
    (source / "sub" / "run").chmod(0o755)

    async def check(subject: Subject) -> None:
        target = f"{subject.scratch}/copy"
        await subject.transport.put_bytes(b"b", f"{target}/b")
        await subject.transport.put(source, target)
        back = tmp_path / "back"
        (back / "sub").mkdir(parents=True)
        await subject.transport.get(target, back)
        found = {str(path.relative_to(back)) for path in back.rglob("*")}
        assert found == {"a", "b", "sub", "sub/empty", "sub/run"}
        assert (back / "sub" / "run").read_text() == "run"
        assert stat.S_IMODE((back / "sub" / "run").stat().st_mode) == 0o755

    prove(check)


def test_what_is_missing_cannot_be_copied(prove: Prove, tmp_path: Path) -> None:
    """A source that is not there is an error that names it, in both directions."""

    async def check(subject: Subject) -> None:
        with pytest.raises(StorageError, match="nowhere") as caught:
            await subject.transport.get(f"{subject.scratch}/nowhere", tmp_path / "x")
        assert caught.value.host == subject.transport.host.name
        with pytest.raises(StorageError, match="nowhere"):
            await subject.transport.put(tmp_path / "nowhere", f"{subject.scratch}/x")

    prove(check)


def test_a_file_is_no_folder(prove: Prove, tmp_path: Path) -> None:
    """Where a file stands, no folder can be made, and the other way round."""
    (tmp_path / "file").write_text("x")

    async def check(subject: Subject) -> None:
        await subject.transport.put_bytes(b"x", f"{subject.scratch}/file")
        with pytest.raises(StorageError):
            await subject.transport.put_bytes(b"x", f"{subject.scratch}/file/below")
        with pytest.raises(StorageError):
            await subject.transport.put(tmp_path / "file", subject.scratch)

    prove(check)


def test_a_tunnel_leads_to_the_host(prove: Prove) -> None:
    """Whatever listens on the host's loopback is reached through the tunnel's port."""

    async def check(subject: Subject) -> None:
        with subject.greeter() as there:
            here = await subject.transport.tunnel(there)
            reader, writer = await asyncio.open_connection("127.0.0.1", here)
            assert await reader.read() == GREETING
            writer.close()
            await writer.wait_closed()

    prove(check)
