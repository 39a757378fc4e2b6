"""The outcome of a run, from how its hosts ended."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from paceline.app.outcome import outcome_of
from paceline.model.plan import Configuration
from paceline.model.record import RunRecord, RunState
from paceline.supervisor.job import FirstFailure, JobState, Notice, ProcessState

RECORD = RunRecord("r", "train", RunState.RUNNING, Configuration(2, 1), Path(), created_at=1.0)


def ended(outcome: str, **more: object) -> JobState:
    """Return the state of a job that has ended."""
    state = {"job_id": "r", "phase": "ended", "outcome": outcome, "wall_s": 3.0}
    return JobState(**{**state, **more})  # type: ignore[arg-type]


def failed(process: str, at: float) -> JobState:
    """Return the state of a job in which a process failed at a time."""
    return ended(
        "failed",
        processes={process: ProcessState(pid=1, exit_code=1, ended_at=at)},
        first_failure=FirstFailure(process, 1, f"Traceback of {process}"),
    )


def test_all_hosts_have_to_succeed() -> None:
    """A run succeeds when every host does; its wall time is that of the slowest."""
    states = {"a": ended("succeeded"), "b": ended("succeeded", wall_s=5.0)}
    outcome = outcome_of(RECORD, states, now=9.0)
    assert (outcome.state, outcome.wall_s) == (RunState.SUCCEEDED, 5.0)


def test_the_first_failure_of_all_hosts_is_told() -> None:
    """Of several failures, the earliest is the reason, with its host and its own words."""
    outcome = outcome_of(RECORD, {"a": failed("rank-0", 8.0), "b": failed("rank-1", 7.0)}, now=9.0)
    assert outcome.state is RunState.FAILED
    assert outcome.failure is not None
    assert (outcome.failure.host, outcome.failure.process) == ("b", "rank-1")
    assert outcome.failure.excerpt == "Traceback of rank-1"


def test_a_failure_outweighs_the_stop_that_it_caused() -> None:
    """Hosts that were stopped because another failed do not hide the failure."""
    outcome = outcome_of(RECORD, {"a": ended("stopped"), "b": failed("rank-1", 7.0)}, now=9.0)
    assert outcome.state is RunState.FAILED


def test_other_ends_have_names_of_their_own() -> None:
    """Stopping, running out of time and losing the supervisor are told apart."""
    assert outcome_of(RECORD, {"a": ended("stopped")}, now=9.0).state is RunState.STOPPED
    late = outcome_of(RECORD, {"a": ended("timeout")}, now=9.0)
    assert late.failure is not None
    assert "time limit" in late.failure.reason
    assert outcome_of(RECORD, {"a": ended("lost")}, now=9.0).state is RunState.LOST


def test_a_machine_that_is_taken_back_is_no_failure() -> None:
    """The run is interrupted, whatever the ranks said that lost their peers; a success stays."""
    notice = Notice("terminate", at=100.0, seen_at=5.0)
    for here in (
        ended("interrupted", notice=notice),
        replace(failed("rank-0", 8.0), notice=notice),
    ):
        outcome = outcome_of(RECORD, {"a": failed("rank-1", 7.0), "b": here}, now=9.0)
        assert outcome.state is RunState.INTERRUPTED
        assert outcome.failure is not None
        assert outcome.failure.host == "b"
    done = outcome_of(RECORD, {"a": ended("succeeded", notice=notice)}, now=9.0)
    assert done.state is RunState.SUCCEEDED


def test_what_is_not_known_is_missing() -> None:
    """A run without any word from its hosts has no wall time, not one of zero."""
    assert outcome_of(RECORD, {}, now=9.0).wall_s is None


def without(host: str, *, at: float = 5.0) -> JobState:
    """Return the state of a job that ended because another host was lost."""
    reason = f"the host {host} is lost: no word from its supervisor for 8 s"
    return ended("failed", first_failure=FirstFailure("", None, "", reason, host=host, at=at))


def test_a_lost_host_is_the_failure() -> None:
    """Most hosts' word counts, between two the first one's; victims of the loss are no news."""
    three = {"a": without("c"), "b": without("c"), "c": without("a", at=4.0)}
    cut_off = {"a": without("b", at=4.0), "b": without("a"), "c": without("a")}
    two = {"a": without("b"), "b": without("a", at=4.0)}
    victim = {"a": without("c"), "b": failed("rank-1", 7.0)}
    for states, lost in ((three, "c"), (cut_off, "a"), (two, "b"), (victim, "c")):
        outcome = outcome_of(RECORD, states, now=9.0)
        assert outcome.state is RunState.FAILED
        assert outcome.failure is not None
        assert outcome.failure.host == lost
        assert f"the host {lost} is lost" in outcome.failure.reason
        assert outcome.failure.process is None


def test_a_rank_that_failed_before_a_host_was_lost_is_named() -> None:
    """What came first is the reason."""
    outcome = outcome_of(RECORD, {"a": without("c"), "b": failed("rank-1", 3.0)}, now=9.0)
    assert outcome.failure is not None
    assert outcome.failure.process == "rank-1"
