"""Tells which process failed first when several are down, and what it had to say."""
# ruff: noqa: PTH204
# That rule asks for pathlib, whose import would add a third to the start of a job.

from __future__ import annotations

import json
import os
import signal
from collections.abc import Mapping

from paceline.supervisor.excerpt import describe_end, excerpt
from paceline.supervisor.files import JobFolder, read_tail
from paceline.supervisor.job import EVENTS_FOLDER, FirstFailure, JobProcess, ProcessState

_LOG_WINDOW_BYTES = 1024 * 1024
_EVENT_WINDOW_BYTES = 8 * 1024
_NEVER = float("inf")

# Nobody gets these from a peer that went away: whoever has one was struck itself. A container's
# client tells of them as shells do.
_STRUCK_BY = (signal.SIGKILL, signal.SIGSEGV, signal.SIGBUS, signal.SIGILL)
_STRUCK = frozenset(code for number in _STRUCK_BY for code in (-number, 128 + number))


def first_to_fail(
    folder: JobFolder, processes: tuple[JobProcess, ...], states: Mapping[str, ProcessState]
) -> str:
    """Return the name of the process that failed first; at least one must have failed.

    The end of one rank makes its peers fail within milliseconds, so that the order in which we
    notice them says little. A rank's own report bears the time of its error, and counts even
    before the process has quite ended; where there is none, the time counts at which the end was
    noticed, and between equals the log that fell silent first.
    """

    def key(process: JobProcess) -> tuple[bool, float, float]:
        state = states[process.name]
        ended_at = state.ended_at if state.exit_code and state.ended_at else _NEVER
        return (
            state.exit_code not in _STRUCK,
            min(_reported_failure_at(folder, process), ended_at),
            _last_word_at(folder, process.name),
        )

    return min(processes, key=key).name


def _reported_failure_at(folder: JobFolder, process: JobProcess) -> float:
    """Return when a rank of the process reported that it failed; infinity if none did."""
    return min((_failed_at(folder, rank) for rank in process.ranks), default=_NEVER)


def _failed_at(folder: JobFolder, rank: int) -> float:
    path = folder.within(EVENTS_FOLDER, f"rank-{rank}.jsonl")
    lines = read_tail(path, _EVENT_WINDOW_BYTES).splitlines()
    try:
        event = json.loads(lines[-1])
        failed = event["kind"] == "end" and event["status"] == "failed"
        return float(event["t"]) if failed else _NEVER
    except (IndexError, KeyError, TypeError, ValueError):
        return _NEVER


def _last_word_at(folder: JobFolder, name: str) -> float:
    try:
        return os.path.getmtime(folder.log_path(name))
    except OSError:
        return _NEVER


def failure_of(folder: JobFolder, name: str, exit_code: int | None) -> FirstFailure:
    """Describe a failure by the log of its process."""
    log = read_tail(folder.log_path(name), _LOG_WINDOW_BYTES).decode("utf-8", "replace")
    reason = "reported a failure" if exit_code is None else describe_end(exit_code)
    return FirstFailure(name, exit_code, excerpt(log), f"{name} {reason}")


def failure_to_start(name: str, reason: str) -> FirstFailure:
    """Describe a process that could not be started."""
    sentence = f"{name} could not be started: {reason}"
    return FirstFailure(name, None, sentence, sentence)
