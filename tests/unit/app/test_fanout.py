"""One command on many hosts: results, lines, and what is said of failures."""

from __future__ import annotations

import asyncio
import gc
import os
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from paceline.app.fanout import HostResult, require_success, run_everywhere
from paceline.app.openfiles import room_for_hosts
from paceline.errors import JobFailed, MissingProgram, TransportError
from paceline.model.command import Command, Completed
from paceline.model.host import Host
from paceline.ports import OnLine
from tests.fakes.transport import FakeHost, FakeProcess, FakeTransport


async def _grumble(process: FakeProcess) -> int:
    process.complain("first\nsecond\n")
    return 3


def links(*machines: FakeHost) -> dict[str, FakeTransport]:
    """Return the ways to fake hosts, whose names are h0, h1 and so on."""
    return {
        f"h{number}": FakeTransport(Host(f"h{number}", "", ""), machine)
        for number, machine in enumerate(machines)
    }


def test_every_host_answers_whatever_the_others_do() -> None:
    """One that fails and one that cannot start it do not keep back the third's result."""
    bad = FakeHost(programs={"echo": _grumble})
    lines: list[tuple[str, str, str]] = []
    work = run_everywhere(
        links(FakeHost(), bad, FakeHost()),
        Command(("echo", "hi")),
        on_line=lambda *line: lines.append(line),
    )
    good, failed, also = asyncio.run(work)
    assert (good.exit_code, good.stdout, also.stdout) == (0, "hi\n", "hi\n")
    assert (failed.exit_code, failed.stderr) == (3, "first\nsecond\n")
    assert ("h0", "stdout", "hi") in lines
    assert ("h1", "stderr", "second") in lines
    missing = asyncio.run(run_everywhere(links(FakeHost()), Command(("nothing",))))
    assert isinstance(missing[0].error, MissingProgram)
    assert missing[0].exit_code is None


def test_one_failure_names_host_command_code_and_last_words() -> None:
    """All four stand in the message."""
    said = "".join(f"line {number}\n" for number in range(9))
    results = [HostResult("a", 0), HostResult("b", 7, stderr=said)]
    with pytest.raises(JobFailed) as caught:
        require_success(Command(("sh", "-c", "exit 7")), results)
    words = str(caught.value)
    assert "b: `sh -c 'exit 7'` failed with exit code 7" in words
    assert "line 8" in words
    assert "line 0" not in words


def test_several_failures_are_all_named() -> None:
    """Those that could not be reached too; if it is only such, the exit code says so."""
    gone = TransportError("cannot be reached", host="c", hint="is it on?")
    results = [HostResult("a", -9), HostResult("b", 0), HostResult("c", None, error=gone)]
    with pytest.raises(JobFailed) as caught:
        require_success(Command(("true",)), results)
    words = str(caught.value)
    assert words.startswith("2 of 3 hosts failed:")
    assert "a: `true` was ended by signal 9" in words
    assert "c: cannot be reached" in words
    with pytest.raises(TransportError):
        require_success(Command(("true",)), results[2:])


def test_success_is_silent() -> None:
    """Nothing is raised where nothing failed."""
    require_success(Command(("true",)), [HostResult("a", 0)])


def test_the_collector_looks_seldom_during_a_fan_out_and_as_before_after_it() -> None:
    """Also when another fan-out begins and ends meanwhile, and when a command raises."""
    seen: list[int] = []

    async def look(_: FakeProcess) -> int:
        seen.append(gc.get_threshold()[0])
        if len(seen) == 1:
            await run_everywhere(links(FakeHost(programs={"look": look})), Command(("look",)))
            seen.append(gc.get_threshold()[0])
        return 0

    before = gc.get_threshold()
    asyncio.run(run_everywhere(links(FakeHost(programs={"look": look})), Command(("look",))))
    assert gc.get_threshold() == before
    assert len(seen) == 3
    assert all(threshold > before[0] for threshold in seen)
    broken = FakeHost(programs={"look": _break})
    with pytest.raises(ZeroDivisionError):
        asyncio.run(run_everywhere(links(broken), Command(("look",))))
    assert gc.get_threshold() == before


async def _break(_: FakeProcess) -> int:
    raise ZeroDivisionError


class FileLink(FakeTransport):
    """A way to a host that is an open file from the first command until it is closed."""

    file: int | None = None

    async def run(
        self, command: Command, *, timeout_s: float | None = 60.0, on_line: OnLine | None = None
    ) -> Completed:
        """Open the way, and run the command."""
        if self.file is None:
            self.file = os.open(os.devnull, os.O_RDONLY)
        return await super().run(command, timeout_s=timeout_s, on_line=on_line)

    async def close(self) -> None:
        """Let go of the file; calling it twice is harmless."""
        await super().close()
        file, self.file = self.file, None
        if file is not None:
            os.close(file)


@pytest.fixture
def few_files() -> Iterator[int]:
    """Allow 320 files more than are open now; return how many that are."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = len(list(Path("/dev/fd").iterdir())) + 320
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    yield allowed
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_more_hosts_than_files_may_be_open_all_answer(few_files: int) -> None:
    """Each is let go when it has answered; a few stay connected until their owner closes them."""
    ways = {f"h{index}": FileLink(Host(f"h{index}", "", "")) for index in range(2 * few_files)}
    results = asyncio.run(run_everywhere(ways, Command(("echo", "hi"))))
    assert {(result.exit_code, result.stdout) for result in results} == {(0, "hi\n")}
    assert all(way.closed for way in ways.values())
    few = links(FakeHost(), FakeHost())
    asyncio.run(run_everywhere(few, Command(("echo", "hi"))))
    assert not any(way.closed for way in few.values())


def test_room_is_made_for_many_hosts_and_given_back(few_files: int) -> None:
    """As much as they need, never more than the system lets us, and nothing for a few."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with room_for_hosts(few_files):
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        assert soft > few_files
    with room_for_hosts(10):
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (few_files, hard)
    with room_for_hosts(10**9):
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[1] == hard
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == (few_files, hard)
