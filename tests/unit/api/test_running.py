"""Runs of which something may be left on hosts: which of them is meant, and how they are asked."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from paceline.api import running
from paceline.api.wiring import SystemClock
from paceline.errors import NotFound, TransportError
from paceline.model.command import Command, Completed
from paceline.model.host import Host, SshAccess
from paceline.model.plan import Configuration, HostPlan, ProcessPlan, RunPlan
from paceline.model.record import RunRecord, RunState
from paceline.ports import OnLine
from paceline.store.index import Index
from paceline.store.runs import RUN_FILE, FileRunStore
from tests.fakes.transport import FakeTransport

SHAPE = Configuration(1, 1)
HOUR, DAY = 3_600.0, 86_400.0


class Away:
    """The hosts of all runs, none of which answers before so many have been asked."""

    def __init__(self, together: int = 1) -> None:
        self.together = together
        self.asked: list[str] = []
        self.all_asked = asyncio.Event()

    async def connect(self, host: Host) -> FakeTransport:
        """Return the way to a host."""
        return AwayTransport(host, self)


class AwayTransport(FakeTransport):
    """The way to a host that does not answer."""

    def __init__(self, host: Host, away: Away) -> None:
        super().__init__(host)
        self.away = away

    async def run(
        self, command: Command, *, timeout_s: float | None = 60.0, on_line: OnLine | None = None
    ) -> Completed:
        """Wait until the others are asked too, and fail."""
        del command, timeout_s, on_line
        self.away.asked.append(self.host.name)
        if len(self.away.asked) == self.away.together:
            self.away.all_asked.set()
        await asyncio.wait_for(self.away.all_asked.wait(), 30)
        raise TransportError("it does not answer", host=self.host.name)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FileRunStore:
    """Return the store that the verbs use."""
    index = Index(tmp_path / "index.sqlite")
    store = FileRunStore(tmp_path / "results", index, SystemClock())
    monkeypatch.setattr(running, "open_store", lambda: store)
    return store


@pytest.fixture
def away(monkeypatch: pytest.MonkeyPatch) -> Away:
    """Let all hosts be away."""
    away = Away()
    monkeypatch.setattr(running, "provider_of", lambda plan: away if plan else None)
    return away


def over(
    store: FileRunStore, name: str, age_s: float, state: RunState = RunState.FAILED
) -> RunRecord:
    """Write down a run that ended so long ago on a host of its name, and left something there."""
    access = None if name == "here" else SshAccess()
    host = HostPlan(Host(name, name, name, access), 0, (ProcessPlan("a", Command(("x",)), (0,)),))
    plan = RunPlan(name, SHAPE, "direct", (host,), name, 1, job_folder="/jobs/r", python="py")
    then = time.time() - age_s
    folder = store.folder_for_run(name)
    record = RunRecord(name, "train", state, SHAPE, folder, created_at=then, ended_at=then)
    store.create_run(record, plan)
    return record


def test_no_run_is_stopped_that_is_done_with(store: FileRunStore, away: Away) -> None:
    """Without a name, a host that is gone for good is not asked any more."""
    over(store, "gone", DAY + HOUR)
    over(store, "spot", HOUR, RunState.INTERRUPTED)
    over(store, "here", HOUR)
    with pytest.raises(NotFound, match="no run goes on"):
        running.stop()
    assert away.asked == []


def test_a_damaged_run_does_not_hide_an_older_one(store: FileRunStore, away: Away) -> None:
    """Without a name, what the newest readable run has left is stopped."""
    over(store, "lost", HOUR)
    damaged = over(store, "damaged", 1.0)
    (damaged.folder / RUN_FILE).write_text("{")
    with pytest.raises(TransportError, match="may still run") as caught:
        running.stop()
    assert caught.value.host == "lost"
    assert away.asked == ["lost"]


def test_hosts_of_several_runs_are_asked_together(store: FileRunStore, away: Away) -> None:
    """A list of runs waits for hosts that are away once, not for one after the other."""
    away.together = 3
    for name in ("a", "b", "c"):
        over(store, name, HOUR)
    assert sorted(record.run_id for record in running.runs()) == ["a", "b", "c"]
    assert sorted(away.asked) == ["a", "b", "c"]
