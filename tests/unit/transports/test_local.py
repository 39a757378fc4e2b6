"""What the local transport does beyond the contract of all transports."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from paceline.errors import MissingProgram, StorageError, TransportError
from paceline.model.command import Command, Secret
from paceline.model.host import Host
from paceline.supervisor import procfs
from paceline.supervisor.files import read_tail
from paceline.transports import child, copying
from paceline.transports.local import LocalTransport

LOCAL = LocalTransport(Host("here", "127.0.0.1", "127.0.0.1"))


@pytest.fixture
def word() -> Iterator[str]:
    """Return a word for the command lines of a test, and prove that none of them is left."""
    made = uuid.uuid4().hex
    yield made
    give_up_at = time.monotonic() + 20
    while running(made) and time.monotonic() < give_up_at:
        time.sleep(0.05)
    assert running(made) == []


def running(word: str) -> list[int]:
    """Return the processes that have a word among their arguments."""
    return [
        entry.pid
        for entry in procfs.all_entries()
        if entry.alive and f"{word}\0".encode() in read_tail(f"/proc/{entry.pid}/cmdline", 10**6)
    ]


def shell(line: str, *words: str) -> Command:
    """Return the command for a line of shell, which sees `words` as $0, $1, …."""
    return Command(("sh", "-c", line, *words))


def test_a_signal_is_a_negative_exit_code() -> None:
    """How a command was ended can be told from its exit code."""
    assert asyncio.run(LOCAL.run(shell("kill -9 $$"))).exit_code == -9


def test_the_whole_group_ends_with_a_late_command(word: str) -> None:
    """What a command has started in its group ends with it."""
    line = shell('sh -c "sleep 1000; true" "$0" & sleep 1000; true', word)
    with pytest.raises(TransportError, match=r"longer than 0\.5 s"):
        asyncio.run(LOCAL.run(line, timeout_s=0.5))


def test_a_deaf_child_of_a_willing_command_is_killed(word: str) -> None:
    """A command that goes when it is asked does not leave those behind who do not listen."""
    line = shell('sh -c "trap \'\' TERM; while :; do sleep 1; done" "$0" & wait', word)
    with pytest.raises(TransportError):
        asyncio.run(LOCAL.run(line, timeout_s=0.5))
    assert running(word) == []


def test_who_ignores_the_request_to_end_is_killed(
    word: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command that is deaf to SIGTERM does not outlive its call."""
    monkeypatch.setattr(child, "_POLITE_S", 0.2)
    with pytest.raises(TransportError):
        asyncio.run(
            LOCAL.run(shell("trap '' TERM; while :; do sleep 1; done", word), timeout_s=0.3)
        )


def test_a_second_cancellation_kills_at_once(word: str) -> None:
    """Nobody waits politely for a caller who is in a hurry, and nothing is left behind."""

    async def hurry() -> None:
        call = asyncio.ensure_future(
            LOCAL.run(shell("trap '' TERM; while :; do sleep 1; done", word))
        )
        for _ in range(500):
            if running(word):
                break
            await asyncio.sleep(0.02)
        await asyncio.sleep(0.1)
        call.cancel()
        await asyncio.sleep(0.1)
        assert not call.done(), "the deaf command is given its time"
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    asyncio.run(hurry())


def test_a_daemon_that_keeps_the_pipe_is_not_waited_for(
    word: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command has ended when it has ended, whoever still holds its output."""
    monkeypatch.setattr(child, "_LAST_WORDS_S", 0.2)
    line = "echo done; setsid sh -c 'sleep 1000; true' \"$0\" &"
    done = asyncio.run(LOCAL.run(shell(line, word), timeout_s=30))
    assert (done.exit_code, done.stdout) == (0, "done\n")
    for pid in running(word):
        for entry in [*procfs.descendants(pid), procfs.entry_of(pid)]:
            if entry is not None:
                procfs.send(entry, 9)


def test_input_that_nobody_reads_is_no_error() -> None:
    """A command may end without having read what it was given."""
    done = asyncio.run(LOCAL.run(Command(("true",), stdin=b"x" * 5_000_000)))
    assert done.exit_code == 0


def test_much_output_on_both_ways_does_not_block() -> None:
    """Stdout and stderr are read at the same time."""
    line = "yes out | head -c 2000000; yes err | head -c 2000000 >&2; yes out | head -c 2000000"
    done = asyncio.run(LOCAL.run(shell(line)))
    assert (len(done.stdout), len(done.stderr)) == (4_000_000, 2_000_000)


def test_a_talkative_stream_is_slowed_down() -> None:
    """A reader that takes its time does not fill our memory."""

    async def dawdle() -> int:
        async with contextlib.aclosing(LOCAL.stream(Command(("yes", "x" * 1000)))) as lines:
            await lines.__anext__()
            before = _resident_kib()
            await asyncio.sleep(0.5)
            return _resident_kib() - before

    assert asyncio.run(dawdle()) < 20_000


def _resident_kib() -> int:
    text = Path("/proc/self/status").read_text()
    return int(text.partition("VmRSS:")[2].split()[0])


def test_a_file_that_may_not_be_executed_is_named(tmp_path: Path) -> None:
    """A program without the right to run it counts as missing."""
    (tmp_path / "plain").write_text("x")
    with pytest.raises(MissingProgram, match="may not be executed"):
        asyncio.run(LOCAL.run(Command((str(tmp_path / "plain"),))))


@pytest.mark.parametrize("argv", [("true", "x" * 3_000_000), ("true", "a\0b")])
def test_a_command_that_the_system_refuses_is_an_error(argv: tuple[str, ...]) -> None:
    """Whatever keeps a command from starting, a secret is not shown."""
    with pytest.raises(TransportError, match="cannot be started") as caught:
        asyncio.run(LOCAL.run(Command(argv, env={"TOKEN": Secret("s3cret")})))
    assert "s3cret" not in str(caught.value)
    assert len(str(caught.value)) < 1000


def test_links_stay_links(tmp_path: Path) -> None:
    """A link in a folder is copied as one, also one that leads nowhere; twice is no problem."""
    source = tmp_path / "source"
    source.mkdir()
    (source / "file").write_text("x")
    (source / "link").symlink_to("file")
    (source / "dangling").symlink_to("nowhere")

    async def twice() -> None:
        for _ in range(2):
            await LOCAL.put(source, str(tmp_path / "copy"))

    asyncio.run(twice())
    assert (tmp_path / "copy" / "link").readlink() == Path("file")
    assert (tmp_path / "copy" / "dangling").readlink() == Path("nowhere")


def test_what_is_no_file_is_left_out(tmp_path: Path) -> None:
    """A pipe in a folder does not hold up a copy for ever."""
    source = tmp_path / "source"
    source.mkdir()
    os.mkfifo(source / "pipe")
    asyncio.run(LOCAL.put(source, str(tmp_path / "copy")))
    assert list((tmp_path / "copy").iterdir()) == []


@pytest.mark.parametrize("cancelled", [False, True])
def test_a_copy_that_nobody_waits_for_is_called_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, cancelled: bool
) -> None:
    """A copy that takes too long ends within a chunk, and leaves neither part nor thread."""
    monkeypatch.setattr(copying, "_CHUNK_BYTES", 16)
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(b"x" * 200_000_000)
    if cancelled:

        async def give_up() -> None:
            call = asyncio.ensure_future(LOCAL.put(source, str(target)))
            await asyncio.sleep(0.2)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call

        asyncio.run(give_up())
    else:
        with pytest.raises(TransportError, match=r"longer than 0\.2 s"):
            asyncio.run(LOCAL.put(source, str(target), timeout_s=0.2))
    assert [path.name for path in tmp_path.iterdir()] == ["source"]
    assert not [thread for thread in threading.enumerate() if "asyncio" in thread.name]


FULL_DISK = """
import asyncio, sys
from pathlib import Path
from paceline.errors import StorageError
from paceline.model.host import Host
from paceline.transports.local import LocalTransport

local, disk = LocalTransport(Host("here", "", "")), sys.argv[1]
big = Path(disk).parent / "big"
big.write_bytes(b"x" * 1_000_000)
works = local.put(big, disk + "/a"), local.put_bytes(b"x" * 10**6, disk + "/b")
for work in works:
    try:
        asyncio.run(work)
    except StorageError as error:
        print(error.message, list(Path(disk).iterdir()))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="a small disk of its own needs root")
def test_a_full_disk_is_said_to_be_full(tmp_path: Path) -> None:
    """The error says so, and no half of a file stays."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = 'mount -t tmpfs -o size=200k none "$0" && exec "$@" "$0"'
    done = subprocess.run(
        ("unshare", "--mount", "sh", "-c", mount, disk, sys.executable, "-c", FULL_DISK),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert len(lines) == 2
    assert all(line.startswith("the disk is full: ") and line.endswith(" []") for line in lines)


def test_a_folder_cannot_replace_a_file(tmp_path: Path) -> None:
    """Where a file stands, no folder is copied to."""
    (tmp_path / "source").mkdir()
    (tmp_path / "file").write_text("x")
    with pytest.raises(StorageError, match="file cannot be copied"):
        asyncio.run(LOCAL.put(tmp_path / "source", str(tmp_path / "file")))


def test_own_facts_need_no_process() -> None:
    """For our own interpreter the facts are there at once; for another they are not."""
    facts = asyncio.run(LOCAL.own_facts(sys.executable))
    assert facts is not None
    assert facts.python_path == sys.executable
    assert asyncio.run(LOCAL.own_facts("/usr/bin/no-such-python")) is None
