"""How a run ended, from what its hosts say: pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from paceline.model.record import Failure, RunRecord, RunState
from paceline.supervisor.job import HUNG, FirstFailure, JobState

_WHERE_IS_IT = (
    "is it still on, and its network there? Once it is back, `paceline ls` clears up there"
)


def outcome_of(record: RunRecord, states: Mapping[str, JobState], *, now: float) -> RunRecord:
    """Return the record of a run whose hosts ended like this. Pure."""
    outcomes = {state.outcome for state in states.values()}
    walls = [state.wall_s for state in states.values() if state.wall_s is not None]
    ends = [state.ended_at for state in states.values() if state.ended_at is not None]
    starts = [state.started_at for state in states.values() if state.started_at is not None]
    base = replace(
        record,
        started_at=min(starts, default=record.started_at),
        ended_at=max(ends, default=now),
        wall_s=max(walls, default=None),
    )
    taken = next((name for name, state in states.items() if _wastaken_back(state)), None)
    if taken is not None:
        return replace(base, state=RunState.INTERRUPTED, failure=taken_back(taken))
    failure = _first_failure(states)
    if failure is None and outcomes == {"succeeded"}:
        return replace(base, state=RunState.SUCCEEDED)
    if failure is not None:
        return replace(base, state=RunState.FAILED, failure=failure)
    if "timeout" in outcomes:
        late = Failure("it ran longer than its time limit", hint="raise `job.timeout`")
        return replace(base, state=RunState.FAILED, failure=late)
    if "lost" in outcomes or not outcomes:
        gone = Failure("its supervisor was killed, and the ranks ended with it")
        return replace(base, state=RunState.LOST, failure=gone)
    return replace(base, state=RunState.STOPPED, failure=Failure("it was stopped"))


def _wastaken_back(state: JobState) -> bool:
    """Whether a job ended because of its machine: ranks that lose a peer fail, as others do."""
    at_fault = state.notice is not None and state.outcome in ("failed", "lost")
    return at_fault or state.outcome == "interrupted"


def taken_back(host: str | None) -> Failure:
    """Return why a run ended whose machine was taken back."""
    return Failure(
        "its spot machine is taken back",
        host=host,
        hint="`market: on-demand` machines stay; a study repeats the sample by itself",
    )


def _first_failure(states: Mapping[str, JobState]) -> Failure | None:
    hung = _hang(states)
    if hung is not None:
        return hung
    lost = _lost_host(states)
    failed = [
        (state.processes[first.process].ended_at or 0.0, name, first)
        for name, state in states.items()
        if (first := state.first_failure) is not None and first.host is None
    ]
    if lost is not None:
        failed.append((lost.at or 0.0, lost.host or "", lost))
    if not failed:
        return None
    _, host, first = min(failed, key=lambda item: item[:2])
    if first.host is not None:
        return Failure(first.reason, host=host, hint=_WHERE_IS_IT)
    return Failure(
        reason=first.reason or f"{first.process} {_ending(first.exit_code)}",
        process=first.process,
        host=host,
        exit_code=first.exit_code,
        excerpt=first.excerpt,
    )


def _lost_host(states: Mapping[str, JobState]) -> FirstFailure | None:
    """Return the loss that most hosts noticed: a host that is cut off takes the others for lost.

    Between two, the word of the first host counts: it is the one that listens.
    """
    noticed = [
        first
        for state in states.values()
        if (first := state.first_failure) is not None and first.host is not None
    ]
    if not noticed:
        return None
    names = [item.host for item in noticed]
    return max(noticed, key=lambda item: names.count(item.host))


def _hang(states: Mapping[str, JobState]) -> Failure | None:
    """Return the failure of a job that hung: the rank that waits for nobody, and all stacks.

    What failed on other hosts did so because the ranks that hung were ended.
    """
    found = [
        (first.waits, name, first)
        for name, state in states.items()
        if state.outcome == HUNG and (first := state.first_failure) is not None
    ]
    if not found:
        return None
    found.sort(key=lambda item: item[0])
    _, host, first = found[0]
    several = len(states) > 1
    stacks = [f"on {name}\n{item.excerpt}" if several else item.excerpt for _, name, item in found]
    hint = "`job.hang_timeout` says how long ranks may get nowhere; null waits for ever"
    return Failure(first.reason, first.process, host, excerpt="\n\n".join(stacks), hint=hint)


def _ending(exit_code: int | None) -> str:
    if exit_code is None:
        return "could not be started"
    if exit_code < 0:
        return f"was ended by signal {-exit_code}"
    return f"failed with exit code {exit_code}"
