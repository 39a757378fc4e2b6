"""The supervisor proper: starts a job's processes, watches, ends and reaps them.

It has one thread and no signal handlers: signals are blocked and waited for, so that nothing
ever happens between two lines of it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import replace

from paceline.supervisor import procfs
from paceline.supervisor.asking import ask_for_checkpoint
from paceline.supervisor.blame import failure_of, failure_to_start, first_to_fail
from paceline.supervisor.companions import LOSS_GRACE_S
from paceline.supervisor.course import Course
from paceline.supervisor.endings import carry_out
from paceline.supervisor.files import STOP_FILE, JobFolder, remove, touch
from paceline.supervisor.hanging import hang_failure
from paceline.supervisor.job import (
    ENDED,
    FAILED,
    HUNG,
    INTERRUPTED,
    RUNNING,
    STACKS_VARIABLE,
    STARTING,
    STOPPED,
    TIMEOUT,
    FirstFailure,
    Job,
    JobProcess,
    JobState,
    ProcessState,
)
from paceline.supervisor.parting import Parting
from paceline.supervisor.pulse import Pulse
from paceline.supervisor.spawn import Prctl, Program, StartFailure, exit_code_of, spawn
from paceline.supervisor.stacks import dump, rank_processes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from paceline.supervisor.company import Company
    from paceline.supervisor.lookout import Watch

_STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
# Our own lookout raises SIGUSR1 when it has seen something, and so does our company.
WATCHED = (signal.SIGCHLD, signal.SIGUSR1, *_STOP_SIGNALS)

# How often the folder is looked for: a job without one can be neither followed nor stopped.
_LONGEST_WAIT_S = 5.0
_ENDING_WAIT_S = 0.05
_RETRY_SAVE_S = 1.0
_KEEP_TRYING_S = 600.0
# A stop that comes after so much of the patience with silent ranks has that silence as its reason.
_HALF_SILENT = 0.5


def note(text: str) -> None:
    """Write a line into the supervisor's own log; a full disk is no reason to stop."""
    with contextlib.suppress(OSError, ValueError):
        stamp = time.strftime("%Y-%m-%d %H:%M:%S")
        sys.stderr.write(f"{stamp} {text}\n")
        sys.stderr.flush()


def _rouse() -> None:
    """Wake the supervisor from a thread of its own."""
    os.kill(os.getpid(), signal.SIGUSR1)


class Supervisor:
    """Runs one job from its first process to its last state."""

    def __init__(self, folder: JobFolder, job: Job, prctl: Prctl) -> None:
        self._folder = folder
        self._job = job
        self._prctl = prctl
        self._names: dict[int, str] = {}
        self._course = Course(frozenset())
        self._parting = Parting()
        self._endings_begun = False
        self._first_started: float | None = None
        self._last_ended: float | None = None
        self._unsaved = True
        self._seen_at = time.monotonic()
        elsewhere = bool(job.endings)
        self._pulse = Pulse(folder, job.processes, self._seen_at, elsewhere=elsewhere)
        self._watch: Watch | None = None
        self._company: Company | None = None
        self._state = JobState(
            job.job_id,
            STARTING,
            supervisor_pid=os.getpid(),
            supervisor_start=procfs.mark_of(os.getpid()),
            processes={process.name: ProcessState() for process in job.processes},
        )

    def run(self, tell_starter: Callable[[str], None]) -> None:
        """Do all of it; `tell_starter` is called once the processes run or could not start."""
        self._start_all()
        self._save()
        tell_starter(self._state.to_json())
        self._look_out()
        self._join_companions()
        while not self._is_over():
            touch(self._job.mark)
            word = self._wait()
            self._reap()
            self._decide(word)
            self._heed_notice()
            self._heed_companions()
            self._end_what_must_end()
            self._save()
        touch(self._job.mark)
        self._finish()

    def _start_all(self) -> None:
        self._save()
        begun = time.monotonic()
        if self._job.timeout_s is not None:
            self._course = replace(self._course, timeout_at=begun + self._job.timeout_s)
        for process in self._job.processes:
            if not self._start(process):
                break
            self._save()
        self._update(phase=RUNNING)
        self._end_what_must_end()

    def _start(self, process: JobProcess) -> bool:
        moment = time.monotonic()
        env = {
            **os.environ,
            "PYTHONUNBUFFERED": "1",
            STACKS_VARIABLE: "1",
            **process.env,
            **self._folder.variables(self._job.job_id),
        }
        started_at = time.time()
        try:
            log_path = self._folder.log_path(process.name)
            pid = spawn(Program(process.argv, env, process.cwd, log_path), self._prctl)
        except StartFailure as failure:
            self._could_not_start(process, str(failure))
            return False
        if self._first_started is None:
            self._first_started = moment
            self._update(started_at=started_at)
        self._names[pid] = process.name
        self._course = replace(self._course, running=self._course.running | {process.name})
        self._update_process(process.name, ProcessState(pid=pid, started_at=started_at))
        note(f"{process.name} started as {pid}")
        return True

    def _could_not_start(self, process: JobProcess, reason: str) -> None:
        failure = failure_to_start(process.name, reason)
        note(failure.reason)
        self._course = self._course.heading(FAILED, time.monotonic(), self._job.grace_s)
        self._update(first_failure=failure, detail=failure.reason)

    def _is_over(self) -> bool:
        course = self._course
        if not course.ending:
            return False
        if course.is_hopeless(time.monotonic()):
            return True
        return not course.running and not procfs.descendants(os.getpid())

    def _wait(self) -> int | None:
        """Sleep until something happens or is due; return the signal that came."""
        wait_s = _LONGEST_WAIT_S
        deadline = self._course.next_deadline()
        if deadline is not None:
            wait_s = min(wait_s, max(0.0, deadline - time.monotonic()))
        if self._job.hang_timeout_s is not None:
            wait_s = min(wait_s, self._job.hang_timeout_s / 4)
        if self._unsaved:
            wait_s = min(wait_s, _RETRY_SAVE_S)
        if self._course.ending:
            wait_s = _ENDING_WAIT_S
        received = signal.sigtimedwait(WATCHED, wait_s)
        return None if received is None else received.si_signo

    def _reap(self) -> None:
        codes: dict[str, int] = {}
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                break
            if pid == 0:
                break
            name = self._names.pop(pid, None)
            if name is not None:
                codes[name] = exit_code_of(status)
                self._has_ended(name, codes[name])
        if codes:
            self._last_ended = time.monotonic()
            was_ending = self._course.ending
            self._course = self._course.after_exits(codes, self._last_ended, self._job.grace_s)
            if self._course.outcome == FAILED and not was_ending:
                self._blame()

    def _has_ended(self, name: str, exit_code: int) -> None:
        before = self._state.processes[name]
        after = replace(before, exit_code=exit_code, ended_at=time.time())
        self._update_process(name, after)
        note(f"{name} ended: {exit_code}")

    def _blame(self) -> None:
        name = first_to_fail(self._folder, self._job.processes, self._state.processes)
        failure = failure_of(self._folder, name, self._state.processes[name].exit_code)
        self._update(first_failure=failure, detail=failure.reason)

    def _decide(self, word: int | None) -> None:
        self._mind_silence(_HALF_SILENT if word in _STOP_SIGNALS else 1.0)
        if word in _STOP_SIGNALS:
            asked = self._folder.asked_grace_s()
            grace_s = self._job.grace_s if asked is None else asked
            note(f"signal {word} received: the job is to stop within {grace_s:g} s")
            self._course = self._course.after_stop_request(time.monotonic(), grace_s)
        now = time.monotonic()
        self._course = self._course.after_time(now, self._job.grace_s)
        if self._is_forsaken():
            note("the job's folder is gone, and nobody can ask about the job: it is ended")
            self._course = self._course.heading(STOPPED, now, self._job.grace_s)

    def _mind_silence(self, share: float) -> None:
        """End a job that has got nowhere for that share of the time that it may."""
        limit_s, now = self._job.hang_timeout_s, time.monotonic()
        if limit_s is None or self._course.ending:
            return
        self._pulse.look(self._names, now)
        if not self._pulse.hung(self._course.running, share * limit_s, now):
            return
        silences = {name: self._pulse.silent_s(name, now) for name in self._course.running}
        silent = (name for name in silences if silences[name] >= share * limit_s)
        names = sorted(silent, key=lambda name: -silences[name])
        # Settled before the ranks are asked: what their end does to others is no news any more.
        self._course = self._course.heading(HUNG, now, self._job.grace_s)
        variables = self._folder.variables(self._job.job_id)
        ranks = rank_processes(self._names, self._job.processes, procfs.marked(variables))
        stacks = dump(self._folder, ranks)
        failure = hang_failure(stacks, names, silences[names[0]])
        note(failure.reason)
        self._update(first_failure=failure, detail=failure.reason)

    def _look_out(self) -> None:
        """Look out for the end of a spot machine, now that nothing is forked any more."""
        if self._job.lookout is None or self._course.ending:
            return
        from paceline.supervisor.lookout import Watch  # noqa: PLC0415 - it costs a start 10 ms

        self._watch = Watch(self._job.lookout, note)
        self._watch.begin()

    def _heed_notice(self) -> None:
        """Once the machine is to be taken back: say so, and ask the ranks for a checkpoint."""
        notice = self._watch.seen if self._watch is not None else None
        if notice is None or self._job.lookout is None or self._state.notice is not None:
            return
        note(f"this machine will be taken back: {notice.action} at {notice.at:.0f}")
        self._update(notice=notice)
        self._folder.report_notice(self._job, notice)
        asked = ask_for_checkpoint(procfs.descendants(os.getpid()))
        note(f"a checkpoint is asked of {len(asked)} processes")
        now = time.monotonic()
        self._course = self._course.after_notice(now, self._job.lookout.wind_down_s)

    def _join_companions(self) -> None:
        """Keep in touch with the supervisors of the other hosts, for the same reason only now."""
        if self._job.companions is None:
            return
        from paceline.supervisor.company import Company  # noqa: PLC0415 - as above

        self._company = Company(self._job.companions, note, _rouse)
        self._company.begin()

    def _heed_companions(self) -> None:
        """End the job if a host is lost or has ended it, and say so if we end it ourselves."""
        if self._company is None:
            return
        news, grace_s = self._company.news, self._job.grace_s
        if news is not None and not self._course.ending:
            note(news.sentence)
            if news.is_loss:
                self._update(first_failure=news.failure(), detail=news.sentence)
                grace_s = min(grace_s, LOSS_GRACE_S)
            else:
                # Ranks that hang do so on all hosts, and each host is to say where its own are.
                self._mind_silence(_HALF_SILENT)
                self._update(detail=self._state.detail or news.sentence)
            outcome = FAILED if news.is_loss else STOPPED
            self._course = self._course.heading(outcome, time.monotonic(), grace_s)
        self._company.tell(self._course.outcome)

    def _is_forsaken(self) -> bool:
        """Whether the folder was gone at two looks: a disk may come back."""
        now = time.monotonic()
        if self._folder.exists():
            self._seen_at = now
        return now - self._seen_at > 1.5 * _LONGEST_WAIT_S

    def _end_what_must_end(self) -> None:
        """Ask what still lives to end, and kill what has had its time."""
        course, now = self._course, time.monotonic()
        if not course.ending:
            return
        if course.must_kill(now):
            self._end_elsewhere(again=False)
            for entry in procfs.descendants(os.getpid()):
                procfs.send(entry, signal.SIGKILL)
            return
        own = self._names if course.running else ()
        self._parting.go_on(procfs.descendants(os.getpid()), own, now)

    def _end_elsewhere(self, *, again: bool) -> None:
        """End what runs out of our reach; a client that is killed leaves its container behind."""
        if self._endings_begun and not again:
            return
        self._endings_begun = True
        for trouble in carry_out(self._folder, self._job, self._prctl):
            note(trouble)

    def _finish(self) -> None:
        self._end_elsewhere(again=True)
        wall_s = None
        if self._first_started is not None and self._last_ended is not None:
            wall_s = self._last_ended - self._first_started
        failure = self._complete_failure()
        self._update(
            phase=ENDED,
            outcome=self._course.outcome,
            wall_s=wall_s,
            ended_at=time.time(),
            first_failure=failure,
            detail=self._detail(),
        )
        if self._company is not None:
            self._company.farewell(self._course.outcome)
        note(f"the job ended: {self._course.outcome}")
        remove(self._folder.within(STOP_FILE))
        give_up_at = time.monotonic() + _KEEP_TRYING_S
        self._save()
        while self._unsaved and self._folder.exists() and time.monotonic() < give_up_at:
            time.sleep(_RETRY_SAVE_S)
            self._save()

    def _complete_failure(self) -> FirstFailure | None:
        """Read the log again: who was blamed may have written on while it ended."""
        failure = self._state.first_failure
        elsewhere = self._course.outcome == HUNG or (failure is not None and failure.host)
        if failure is None or elsewhere or self._state.processes[failure.process].pid is None:
            return failure
        exit_code = self._state.processes[failure.process].exit_code
        final = failure_of(self._folder, failure.process, exit_code)
        return replace(final, reason=failure.reason)

    def _detail(self) -> str | None:
        left = [str(entry.pid) for entry in procfs.descendants(os.getpid())]
        words = self._state.detail
        if self._course.outcome == STOPPED:
            words = words or "the job was stopped on request"
        elif self._course.outcome == INTERRUPTED:
            words = "the job was ended because its machine is taken back"
        elif self._course.outcome == TIMEOUT:
            words = f"the job was stopped because it took longer than {self._job.timeout_s:g} s"
        if not left:
            return words
        stuck = f"these processes could not be ended: {', '.join(left)}"
        return f"{words}; {stuck}" if words else stuck

    def _update(self, **changes: Any) -> None:
        self._state = replace(self._state, **changes)
        self._unsaved = True

    def _update_process(self, name: str, process: ProcessState) -> None:
        self._update(processes={**self._state.processes, name: process})

    def _save(self) -> None:
        if not self._unsaved:
            return
        try:
            self._folder.write_state(self._state)
        except OSError as error:
            note(f"the state cannot be written, and is kept: {error}")
            return
        self._unsaved = False
