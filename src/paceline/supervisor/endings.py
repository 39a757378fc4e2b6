"""Carries out a job's endings: what it has started elsewhere must not outlive it.

The processes in a container belong to its engine. They end with the client that we started, as
a rule; but the client can be killed, and the container then goes on.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping

from paceline.supervisor.files import DIARY_FILE, JobFolder
from paceline.supervisor.job import Job
from paceline.supervisor.spawn import Prctl, Program, StartFailure, exit_code_of, spawn

_WITHIN_S = 20.0
_LOOK_AGAIN_S = 0.01


def carry_out(folder: JobFolder, job: Job, prctl: Prctl) -> list[str]:
    """Run a job's endings; return what could not be done, in words."""
    return [trouble for words in job.endings if (trouble := _run(folder, words, prctl))]


def _run(folder: JobFolder, words: tuple[str, ...], prctl: Prctl) -> str | None:
    log = folder.within(DIARY_FILE) if folder.exists() else os.devnull
    # Without the job's own marks: what ends a job must not be taken for a part of it.
    env: Mapping[str, str] = os.environ
    try:
        pid = spawn(Program(words, env, None, log), prctl)
    except StartFailure as failure:
        return str(failure)
    give_up_at = time.monotonic() + _WITHIN_S
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            code = exit_code_of(status)
            return None if code == 0 else f"{' '.join(words)} ended with exit code {code}"
        if time.monotonic() > give_up_at:
            os.kill(pid, 9)
            os.waitpid(pid, 0)
            return f"{' '.join(words)} did not end within {_WITHIN_S:g} s"
        time.sleep(_LOOK_AGAIN_S)
