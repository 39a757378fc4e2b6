"""Ends processes that nobody watches over any more, and says what became of their job."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable
from dataclasses import replace

from paceline.errors import PacelineError
from paceline.supervisor import procfs
from paceline.supervisor.endings import carry_out
from paceline.supervisor.files import JobFolder, cannot_write
from paceline.supervisor.job import DEFAULT_GRACE_S, ENDED, LOST, STOPPED, JobState
from paceline.supervisor.procfs import ProcessEntry
from paceline.supervisor.spawn import load_prctl

_LOOK_AGAIN_S = 0.05
_HOPELESS_AFTER_S = 30.0
_LOST_GRACE_S = 5.0


def end_all(find: Callable[[], list[ProcessEntry]], grace_s: float) -> int:
    """End what `find` finds until it finds nothing; return how many processes there were.

    Each is asked once with SIGTERM; after the grace, whatever is left is killed.
    """
    asked: set[tuple[int, str]] = set()
    kill_at = time.monotonic() + grace_s
    while entries := find():
        now = time.monotonic()
        if now > kill_at + _HOPELESS_AFTER_S:
            break
        for entry in entries:
            identity = (entry.pid, entry.started)
            if now >= kill_at:
                procfs.send(entry, signal.SIGKILL)
            elif identity not in asked:
                procfs.send(entry, signal.SIGTERM)
            asked.add(identity)
        time.sleep(_LOOK_AGAIN_S)
    return len(asked)


def current_state(folder: JobFolder, grace_s: float | None = None) -> JobState:
    """Return the state of a job; one that its supervisor has left behind is ended and lost."""
    state = folder.known_state()
    if state.ended:
        return state
    lock = folder.try_lock()
    if lock is None:
        return state
    try:
        return _bury(folder, grace_s)
    finally:
        os.close(lock)


def _bury(folder: JobFolder, grace_s: float | None) -> JobState:
    """Do what the supervisor can no longer do; the caller holds its lock."""
    state = folder.known_state()
    if state.ended:
        return state
    if grace_s is None:
        grace_s = min(_grace_of(folder), _LOST_GRACE_S)
    variables = folder.variables(state.job_id)
    count = end_all(lambda: procfs.marked(variables), grace_s)
    _end_elsewhere(folder)
    return record_loss(folder, state, "the supervisor was gone without a last word", count)


def record_loss(folder: JobFolder, state: JobState, why: str, count: int) -> JobState:
    """Write down that nobody knows how a job ended."""
    left = "1 process was" if count == 1 else f"{count} processes were"
    lost = replace(
        state,
        phase=ENDED,
        outcome=LOST,
        ended_at=time.time(),
        detail=f"{why}; {left} left of the job, and ended",
    )
    _write(folder, lost)
    return lost


def _write(folder: JobFolder, state: JobState) -> None:
    try:
        folder.write_state(state)
    except OSError as error:
        raise cannot_write(folder.path, error) from error


def _end_elsewhere(folder: JobFolder) -> None:
    with contextlib.suppress(PacelineError):  # a job that cannot be read has no endings
        carry_out(folder, folder.read_job(), load_prctl())


def _grace_of(folder: JobFolder) -> float:
    try:
        return folder.read_job().grace_s
    except PacelineError:
        return DEFAULT_GRACE_S


def stop(folder: JobFolder, grace_s: float | None) -> JobState:
    """Stop a job and return its last state; one that has ended is left as it is."""
    state = _begun_state(folder)
    if not state.ended and grace_s is not None:
        folder.ask_to_stop(grace_s)
    patience_s = (_grace_of(folder) if grace_s is None else grace_s) + 2 * _HOPELESS_AFTER_S
    give_up_at = time.monotonic() + patience_s
    signalled = False
    while not (state := current_state(folder, grace_s)).ended:
        if time.monotonic() > give_up_at:
            raise PacelineError(
                f"the job in {folder.path} has not ended within {patience_s:g} s of being told to",
                hint="Look for processes that hang in the kernel (state D in ps).",
            )
        signalled = signalled or _signal_supervisor(state)
        time.sleep(_LOOK_AGAIN_S)
    return state


def _begun_state(folder: JobFolder) -> JobState:
    """Return the state of a job, and make sure that one that has not begun never will.

    Whoever stops a job may have cut off its start a moment ago: it may still be on its way.
    """
    give_up_at = time.monotonic() + _HOPELESS_AFTER_S
    while (state := folder.read_state()) is None and time.monotonic() < give_up_at:
        job = folder.read_job()
        lock = folder.try_lock()
        if lock is None:
            time.sleep(_LOOK_AGAIN_S)
            continue
        try:
            if folder.read_state() is None:
                words = "the job was stopped before its start"
                _write(folder, JobState(job.job_id, ENDED, STOPPED, detail=words))
        finally:
            os.close(lock)
    return folder.known_state() if state is None else state


def _signal_supervisor(state: JobState) -> bool:
    pid, mark = state.supervisor_pid, state.supervisor_start
    return pid is not None and mark is not None and procfs.send_marked(pid, mark, signal.SIGTERM)
