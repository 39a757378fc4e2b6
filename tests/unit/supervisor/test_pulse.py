"""The pulse of a job: what counts as progress, and what does not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from paceline.supervisor import pulse
from paceline.supervisor.files import JobFolder
from paceline.supervisor.job import JobProcess
from paceline.supervisor.pulse import Pulse

ITERATION = '{"kind":"iteration","rank":0}\n'


@pytest.fixture
def folder(tmp_path: Path) -> JobFolder:
    """Return a job's folder."""
    made = JobFolder(str(tmp_path))
    made.create()
    return made


def watch(folder: JobFolder, monkeypatch: pytest.MonkeyPatch) -> tuple[Pulse, dict[str, int]]:
    """Return the pulse of two ranks, and the ticks that they will have computed."""
    ticks = {"rank-0": 0, "rank-1": 0}
    monkeypatch.setattr(pulse, "ticks_below", lambda _: dict(ticks))
    processes = tuple(JobProcess(f"rank-{n}", ("x",), ranks=(n,)) for n in (0, 1))
    return Pulse(folder, processes, 0.0), ticks


PIDS = {10: "rank-0", 11: "rank-1"}
BOTH = frozenset(PIDS.values())


def test_all_that_are_silent_hang(folder: JobFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without any progress, the limit counts from the start; one that writes puts it off."""
    found, _ = watch(folder, monkeypatch)
    found.look(PIDS, 9.0)
    assert not found.hung(BOTH, 10.0, 9.0)
    assert found.hung(BOTH, 10.0, 10.0)
    Path(folder.log_path("rank-1")).write_text("a word")
    found.look(PIDS, 10.0)
    assert not found.hung(BOTH, 10.0, 19.0)
    assert found.hung(BOTH, 10.0, 20.0)


def test_work_counts_until_iterations_are_reported(
    folder: JobFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A silent script that computes gets somewhere; a rank that reports has to report."""
    found, ticks = watch(folder, monkeypatch)
    second = os.sysconf("SC_CLK_TCK")
    Path(folder.within("events", "rank-0.jsonl")).write_text(ITERATION)
    found.look(PIDS, 1.0)
    for now in range(2, 13):
        ticks["rank-0"] += second
        ticks["rank-1"] += second
        found.look(PIDS, float(now))
    assert (found.silent_s("rank-0", 12.0), found.silent_s("rank-1", 12.0)) == (11.0, 0.0)
    assert found.hung(BOTH, 10.0, 12.0)
    assert not found.hung(BOTH, 12.0, 12.0)


def test_work_in_a_container_is_taken_for_granted(
    folder: JobFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What cannot be seen computing is left alone until it has reported an iteration."""
    monkeypatch.setattr(pulse, "ticks_below", lambda _: {"rank-0": 0})
    found = Pulse(folder, (JobProcess("rank-0", ("x",), ranks=(0,)),), 0.0, elsewhere=True)
    one = {10: "rank-0"}
    found.look(one, 100.0)
    assert not found.hung(frozenset(one.values()), 10.0, 100.0)
    Path(folder.within("events", "rank-0.jsonl")).write_text(ITERATION)
    found.look(one, 100.0)
    found.look(one, 111.0)
    assert found.hung(frozenset(one.values()), 10.0, 111.0)


def test_waiting_is_no_work(folder: JobFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a poll now and then costs does not count."""
    found, ticks = watch(folder, monkeypatch)
    for now in range(1, 12):
        ticks["rank-0"] += 1
        found.look(PIDS, float(now))
    assert found.hung(BOTH, 10.0, 11.0)


def test_nobody_cannot_hang(folder: JobFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing runs any more, nothing hangs."""
    found, _ = watch(folder, monkeypatch)
    assert not found.hung(frozenset(), 1.0, 100.0)


def test_what_a_process_and_its_children_compute_is_added_up() -> None:
    """Our own process has computed something, and it is under its name."""
    assert pulse.ticks_below({os.getpid(): "us"})["us"] > 0
