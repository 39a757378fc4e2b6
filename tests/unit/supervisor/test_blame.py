from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from paceline.supervisor.blame import failure_of, failure_to_start, first_to_fail
from paceline.supervisor.files import JobFolder
from paceline.supervisor.job import JobProcess, ProcessState

RANKS = tuple(JobProcess(f"rank-{rank}", ("x",), ranks=(rank,)) for rank in range(3))


@pytest.fixture
def folder(tmp_path: Path) -> JobFolder:
    """Return a job's folder with a log for each rank."""
    made = JobFolder(str(tmp_path))
    made.create()
    for process in RANKS:
        Path(made.log_path(process.name)).write_text(f"words of {process.name}\n")
    return made


def report(folder: JobFolder, rank: int, at: float, status: str = "failed") -> None:
    """Let a rank report its end."""
    event = {"kind": "end", "rank": rank, "t": at, "status": status}
    Path(folder.within("events", f"rank-{rank}.jsonl")).write_text(json.dumps(event) + "\n")


def states(**ends: tuple[int, float]) -> dict[str, ProcessState]:
    """Return the states of three ranks, those named here having ended."""
    return {
        process.name: ProcessState(1, *(ends[key][0], 0.0, ends[key][1]))
        if (key := process.name.replace("-", "_")) in ends
        else ProcessState(1)
        for process in RANKS
    }


def test_the_only_failure_is_the_first(folder: JobFolder) -> None:
    """Ranks that run or have ended well are not blamed."""
    assert first_to_fail(folder, RANKS, states(rank_0=(0, 1.0), rank_2=(1, 2.0))) == "rank-2"


def test_the_earliest_report_decides(folder: JobFolder) -> None:
    """Noticed last, but first to report its error: that rank is to blame."""
    report(folder, 0, at=10.2)
    report(folder, 1, at=10.1)
    assert first_to_fail(folder, RANKS, states(rank_0=(1, 10.3), rank_1=(1, 10.4))) == "rank-1"


def test_a_report_counts_before_the_process_has_ended(folder: JobFolder) -> None:
    """A rank that still takes its leave can have failed before one that is gone."""
    report(folder, 1, at=10.1)
    assert first_to_fail(folder, RANKS, states(rank_0=(-6, 10.3))) == "rank-1"


def test_a_good_end_is_no_failure(folder: JobFolder) -> None:
    """Only a report of failure is one."""
    report(folder, 1, at=1.0, status="ok")
    assert first_to_fail(folder, RANKS, states(rank_0=(1, 10.3))) == "rank-0"


def test_who_was_killed_did_not_fail_because_of_a_peer(folder: JobFolder) -> None:
    """The rank that ran out of memory is named, not the one that missed it first."""
    report(folder, 1, at=10.0)
    ends = states(rank_0=(-signal.SIGKILL, 10.3), rank_1=(1, 10.2))
    assert first_to_fail(folder, RANKS, ends) == "rank-0"


def test_the_log_that_fell_silent_first_breaks_a_tie(folder: JobFolder) -> None:
    """Where two ends are noticed together and nobody reports, the older log decides."""
    for rank, moment in enumerate((300, 100, 200)):
        os.utime(folder.log_path(f"rank-{rank}"), (moment, moment))
    assert first_to_fail(folder, RANKS, states(rank_0=(1, 5.0), rank_2=(1, 5.0))) == "rank-2"


@pytest.mark.parametrize("junk", ["", "{", "[]", '{"kind": "end"}', "null"])
def test_junk_in_an_event_file_blames_nobody(folder: JobFolder, junk: str) -> None:
    """A line that was cut off by a crash is passed over."""
    Path(folder.within("events", "rank-1.jsonl")).write_text(junk)
    assert first_to_fail(folder, RANKS, states(rank_2=(1, 5.0))) == "rank-2"


def test_a_failure_is_described_by_its_log(folder: JobFolder) -> None:
    """The excerpt comes from the log of the process, the reason from its exit code."""
    failure = failure_of(folder, "rank-1", -signal.SIGSEGV)
    assert failure.excerpt == "words of rank-1"
    assert failure.reason == "rank-1 was ended by SIGSEGV"
    assert failure_of(folder, "rank-1", None).reason == "rank-1 reported a failure"


def test_a_failed_start_needs_no_log() -> None:
    """What kept a process from starting is the whole story."""
    failure = failure_to_start("rank-1", "there is no program 'x' on PATH")
    assert failure.exit_code is None
    assert failure.excerpt == "rank-1 could not be started: there is no program 'x' on PATH"
