"""Stopping a run and clearing up after it: whose word counts, and what stays where it is."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from paceline.app.launch import Launchpad, finish_run, may_have_left, refresh_run, stop_run
from paceline.errors import NotFound, TransportError
from paceline.model.command import Command, Completed
from paceline.model.host import Host, SshAccess
from paceline.model.plan import Configuration, HostPlan, ProcessPlan, RunPlan
from paceline.model.record import RunRecord, RunState
from paceline.ports import OnLine
from paceline.store.index import Index
from paceline.store.runs import FileRunStore
from tests.fakes.transport import FakeProcess, FakeTransport

FOLDER = "/jobs/r"
ENDED = {
    "job_id": "r",
    "phase": "ended",
    "outcome": "stopped",
    "processes": {"rank-0": {"pid": 1, "exit_code": -15, "ended_at": 2.0}},
}
UNKNOWN = {"error": "there is no job", "type": "NotFound", "exit_code": NotFound.exit_code}
BROKEN = {"error": "state.json is damaged", "type": "StorageError", "exit_code": 9}


class Still:
    """A clock that stands still."""

    def now(self) -> float:
        """Unix seconds."""
        return 100.0

    def monotonic(self) -> float:
        """Seconds that never go back."""
        return 100.0

    async def sleep(self, seconds: float) -> None:
        """Let others go on."""
        await asyncio.sleep(seconds and 0)


class Supervised(FakeTransport):
    """A host with a job's folder and a supervisor that gives one answer, after some silence."""

    def __init__(self, name: str, answer: dict[str, Any], *, silent: int = 0) -> None:
        super().__init__(Host(name, name, name, SshAccess()))
        self.answer = answer
        self.silent = silent
        for part in ("events", "logs", "out"):
            self.machine.make_folder(f"{FOLDER}/{part}")
        self.machine.programs |= {"py": self._supervise, "rm": self._remove, "true": self._true}

    @property
    def said(self) -> list[str]:
        """What the host was told, word by word."""
        words = {"py": 3, "rm": 0}
        return [
            command.argv[words[command.argv[0]]]
            for command in self.machine.history
            if command.argv[0] in words
        ]

    async def run(
        self, command: Command, *, timeout_s: float | None = 60.0, on_line: OnLine | None = None
    ) -> Completed:
        """Run a command, unless the host is silent still."""
        if self.silent:
            self.silent -= 1
            raise TransportError("it does not answer", host=self.host.name)
        return await super().run(command, timeout_s=timeout_s, on_line=on_line)

    async def _supervise(self, process: FakeProcess) -> int:
        await process.say(json.dumps(self.answer).encode())
        return int(self.answer.get("exit_code", 0))

    async def _remove(self, process: FakeProcess) -> int:
        assert process.argv == ("rm", "-rf", "--", FOLDER)
        return 0

    async def _true(self, process: FakeProcess) -> int:
        del process
        return 0


class Writing(FileRunStore):
    """A store that remembers in which states runs were written down."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / "results", Index(folder / "index.sqlite"), Still())
        self.written: list[tuple[RunState, bool]] = []

    def update_run(self, record: RunRecord) -> None:
        """Write down what has become of a run."""
        self.written.append((record.state, record.tidied))
        super().update_run(record)


class Scene:
    """A run of two ranks on two hosts, `a` and `b`, that goes on."""

    def __init__(self, folder: Path, a: Supervised, b: Supervised) -> None:
        self.a, self.b = a, b
        hosts = tuple(
            HostPlan(link.host, rank, (ProcessPlan(f"rank-{rank}", Command(("x",)), (rank,)),))
            for rank, link in enumerate((a, b))
        )
        shape = Configuration(2, 1)
        self.plan = RunPlan("r", shape, "direct", hosts, "a", 1, job_folder=FOLDER, python="py")
        self.store = Writing(folder)
        self.record = RunRecord(
            "r", "train", RunState.RUNNING, shape, self.store.folder_for_run("r"), created_at=99.0
        )
        self.store.create_run(self.record, self.plan)
        self.store.written.clear()
        self.pad = Launchpad({"a": a, "b": b}, self.store, Still())

    def ended(self, state: RunState = RunState.FAILED, ended_at: float = 99.5) -> RunRecord:
        """Let the run be over, with something left on its hosts."""
        record = replace(self.record, state=state, ended_at=ended_at)
        self.store.update_run(record)
        self.store.written.clear()
        return record

    def stop(self, record: RunRecord | None = None) -> RunRecord:
        """Stop the run."""
        return do(stop_run(self.pad, self.plan, record or self.record))

    def look(self, record: RunRecord) -> RunRecord:
        """Look how the run stands."""
        return do(refresh_run(self.pad, self.plan, record))


def do(work: Coroutine[Any, Any, RunRecord]) -> RunRecord:
    """Do some work to its end."""
    return asyncio.run(work)


@pytest.mark.parametrize("over", [False, True])
def test_a_host_that_was_not_stopped_keeps_its_folder(tmp_path: Path, *, over: bool) -> None:
    """Whose ranks may still run is said, and nothing of it removed; the others are cleared."""
    scene = Scene(tmp_path, Supervised("a", ENDED), Supervised("b", ENDED, silent=1))
    with pytest.raises(TransportError) as caught:
        scene.stop(scene.ended() if over else None)
    assert caught.value.host == "b"
    assert "its ranks may still run" in caught.value.message
    assert "paceline stop r" in (caught.value.hint or "")
    assert (scene.a.said, scene.b.said) == (["stop", "rm"], [])
    known = scene.store.reread(scene.record)
    assert (known.state.ended, known.tidied) == (True, False)
    # Now it answers.
    assert scene.look(known).tidied
    assert scene.b.said == ["stop", "rm"]


def test_a_host_with_a_fault_has_not_been_stopped(tmp_path: Path) -> None:
    """An answer that is neither a state nor that nothing is known leaves the folder there."""
    scene = Scene(tmp_path, Supervised("a", ENDED), Supervised("b", BROKEN))
    with pytest.raises(TransportError, match="damaged"):
        scene.stop()
    assert "rm" not in scene.b.said


def test_a_host_that_knows_nothing_is_cleared(tmp_path: Path) -> None:
    """It has no ranks that could still run, so the run leaves nothing to be looked after."""
    scene = Scene(tmp_path, Supervised("a", ENDED), Supervised("b", UNKNOWN))
    stopped = scene.stop()
    assert (stopped.state, stopped.tidied) == (RunState.STOPPED, True)
    assert scene.b.said == ["stop", "rm"]


def test_a_run_is_not_called_lost_while_a_host_is_silent(tmp_path: Path) -> None:
    """What one host has never heard of may be at work on another one."""
    scene = Scene(tmp_path, Supervised("a", UNKNOWN), Supervised("b", UNKNOWN, silent=9))
    with pytest.raises(TransportError):
        scene.stop()
    assert scene.store.reread(scene.record).state is RunState.RUNNING
    assert scene.store.written == []


def test_what_is_left_is_its_owner_s_while_he_is_there(tmp_path: Path) -> None:
    """Who looks at a run that another process follows neither collects, clears nor writes."""
    scene = Scene(tmp_path, Supervised("a", ENDED), Supervised("b", ENDED))
    record = scene.ended()
    with scene.store.lock(record):
        assert scene.look(record) == record
        assert scene.stop(record) == record
    assert "rm" not in scene.a.said
    assert scene.store.written == []


def test_a_stale_record_is_not_written_back(tmp_path: Path) -> None:
    """What has been written down since it was read stays written."""
    scene = Scene(tmp_path, Supervised("a", ENDED), Supervised("b", ENDED))
    stale = scene.ended(RunState.STOPPED)
    now = scene.ended(RunState.FAILED)
    assert scene.look(stale) == replace(now, tidied=True)
    assert scene.store.reread(stale) == replace(now, tidied=True)


def test_a_run_that_is_given_up_is_written_down_as_failed_at_once(tmp_path: Path) -> None:
    """Nobody who looks meanwhile reads that it was stopped or lost."""

    class Mute(Supervised):
        """A host that does not even know how to be followed."""

        def stream(self, *_: object, **__: object) -> Any:
            """Fail as no connection does."""
            raise NotFound("what was looked for is gone", host="b")

    scene = Scene(tmp_path, Supervised("a", ENDED), Mute("b", ENDED))
    with pytest.raises(NotFound):
        do(finish_run(scene.pad, scene.plan, scene.record, print))
    assert scene.store.written == [(RunState.FAILED, False), (RunState.FAILED, True)]


@pytest.mark.parametrize(
    ("state", "ended_at", "expected"),
    [
        (RunState.FAILED, 99.0, True),
        (RunState.FAILED, 99.0 - 90_000, False),
        (RunState.INTERRUPTED, 99.0, False),
        (RunState.UNREADABLE, 99.0, False),
        (RunState.RUNNING, 99.0, False),
    ],
)
def test_a_lost_host_is_looked_for_for_a_day(
    tmp_path: Path, state: RunState, ended_at: float, *, expected: bool
) -> None:
    """One that is away for longer, or was taken back, is gone for good."""
    scene = Scene(tmp_path, Supervised("a", ENDED), Supervised("b", ENDED))
    record = replace(scene.record, state=state, ended_at=ended_at)
    assert may_have_left(scene.plan, record, 100.0) is expected
