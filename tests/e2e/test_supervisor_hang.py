"""Jobs that get nowhere are ended with their stacks as the reason; jobs that work are let alone."""

from __future__ import annotations

import os
import signal

import pytest

from paceline.supervisor.job import JobProcess
from tests.fakes.supervised import SupervisedJob, python, shell, until

pytestmark = pytest.mark.e2e

REPORTS = """
import time
from paceline.events import Reporter
def stuck_for_good():
    time.sleep(600)
with Reporter() as progress:
    progress.iteration(0)
    stuck_for_good()
"""
GOES_ON = """
import time
from paceline.events import Reporter
with Reporter() as progress:
    for _ in range(6000):
        progress.iteration(0)
        time.sleep(0.1)
"""
SILENT_WORK = """
import time
until = time.monotonic() + 6
while time.monotonic() < until:
    pass
"""


def rank(number: int, code: str) -> JobProcess:
    """Return a rank as the launcher `direct` starts it."""
    return JobProcess(f"rank-{number}", python(code), {"RANK": str(number)}, ranks=(number,))


def test_one_rank_that_hangs_among_others_is_named(job: SupervisedJob) -> None:
    """A rank that reported iterations and then nothing ends the job, and shows where it was."""
    job.write_processes(rank(0, GOES_ON), rank(1, REPORTS), hang_timeout_s=3.0)
    job.start()
    state = job.ended()
    assert state.outcome == "hung"
    failure = state.first_failure
    assert failure is not None
    assert (failure.process, failure.exit_code) == ("rank-1", None)
    assert failure.reason.startswith("rank 1 hangs: no output, no event for ")
    assert "in stuck_for_good" in failure.excerpt
    assert "Extension modules" not in failure.excerpt


def test_a_rank_that_is_frozen_is_named(job: SupervisedJob) -> None:
    """A rank that was stopped from outside tells where it was all the same."""
    job.write_processes(rank(0, REPORTS), hang_timeout_s=4.0)
    job.start()
    events = job.path / "events" / "rank-0.jsonl"
    until(lambda: events.is_file() and "iteration" in events.read_text(), "an iteration")
    os.kill(job.status().processes["rank-0"].pid or 0, signal.SIGSTOP)
    state = job.ended()
    assert state.outcome == "hung"
    assert state.first_failure is not None
    assert "stuck_for_good" in state.first_failure.excerpt


def test_silent_work_is_no_hang(job: SupervisedJob) -> None:
    """A script that reports nothing and prints nothing, but computes, runs to its end."""
    job.write_processes(rank(0, SILENT_WORK), hang_timeout_s=1.5)
    job.start()
    assert job.ended().outcome == "succeeded"


def test_a_program_that_cannot_be_asked_is_ended_too(job: SupervisedJob) -> None:
    """Where there is no Python, the reason says so."""
    process = JobProcess("rank-0", shell("sleep 600"), {"RANK": "0"}, ranks=(0,))
    job.write_processes(process, hang_timeout_s=1.5)
    job.start()
    state = job.ended()
    assert state.outcome == "hung"
    assert state.first_failure is not None
    assert "none of its ranks is a Python" in state.first_failure.reason


def test_without_a_limit_nobody_is_asked(job: SupervisedJob) -> None:
    """A job without a hang timeout may be silent for as long as it likes."""
    job.write_processes(JobProcess("rank-0", shell("sleep 4"), {"RANK": "0"}, ranks=(0,)))
    job.start()
    assert job.ended().outcome == "succeeded"
