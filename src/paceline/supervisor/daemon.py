"""Lets a job's supervisor loose from the terminal, with a keeper above it.

    start ──┬─ prints the state and ends
            └─ keeper          sleeps; ends what is left should the supervisor be killed
                 └─ supervisor
                      ├─ process (its own group, ended by the kernel with the supervisor)
                      └─ process …

Both are subreapers: whatever the processes leave behind falls to the supervisor, and whatever
the supervisor leaves behind falls to the keeper. If both are killed, the environment that the
job's processes carry still tells `status` and `stop` which they are.
"""

from __future__ import annotations

import contextlib
import os
import signal

from paceline.errors import PacelineError
from paceline.supervisor import procfs
from paceline.supervisor.ending import end_all, record_loss
from paceline.supervisor.endings import carry_out
from paceline.supervisor.excerpt import describe_end
from paceline.supervisor.files import DIARY_FILE, JobFolder, cannot_write, read_tail, write_all
from paceline.supervisor.job import Job
from paceline.supervisor.spawn import Prctl, adopt_orphans, exit_code_of, load_prctl
from paceline.supervisor.supervise import WATCHED, Supervisor, note

_IGNORED = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGPIPE)


def launch(folder: JobFolder) -> str:
    """Start the job of a folder and return its state once all of it runs or one part cannot."""
    job = folder.read_job()
    lock = folder.claim()
    try:
        folder.create()
        prctl = load_prctl()
        diary = _open_diary(folder)
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reader)
            _detach(folder, job, prctl, diary, writer)
        os.close(writer)
        os.close(diary)
        os.waitpid(child, 0)
    finally:
        # The copy in the daemon keeps the job locked.
        os.close(lock)
    with os.fdopen(reader, "rb") as pipe:
        state = pipe.read().decode()
    if not state:
        raise _stillborn(folder)
    return state


def _open_diary(folder: JobFolder) -> int:
    path = folder.within(DIARY_FILE)
    try:
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise cannot_write(path, error) from error


def _stillborn(folder: JobFolder) -> PacelineError:
    words = read_tail(folder.within(DIARY_FILE), 2000).decode("utf-8", "replace").strip()
    last = words.splitlines()[-1] if words else "it left no word"
    return PacelineError(
        f"the supervisor in {folder.path} did not come up: {last}",
        hint=f"See {folder.within(DIARY_FILE)}.",
    )


def _detach(folder: JobFolder, job: Job, prctl: Prctl, diary: int, writer: int) -> None:
    """Become a daemon: a session of its own, no terminal, no one to wait for it."""
    try:
        os.setsid()
        if os.fork() == 0:
            null = os.open(os.devnull, os.O_RDWR)
            os.dup2(null, 0)
            os.dup2(diary, 1)
            os.dup2(diary, 2)
            _keep(folder, job, prctl, writer)
    except BaseException:  # noqa: BLE001 - nothing may unwind into the copy of the starter
        _note_traceback()
    finally:
        os._exit(0)


def _keep(folder: JobFolder, job: Job, prctl: Prctl, writer: int) -> None:
    """Start the supervisor and wait for it; after an unnatural end, clear up behind it."""
    for signum in _IGNORED:
        signal.signal(signum, signal.SIG_IGN)
    adopt_orphans(prctl)
    child = os.fork()
    if child == 0:
        _supervise(folder, job, prctl, writer)
    os.close(writer)
    _, status = os.waitpid(child, 0)
    if status == 0:
        return
    ended = describe_end(exit_code_of(status))
    note(f"the supervisor {ended}")
    count = end_all(lambda: procfs.descendants(os.getpid()), job.grace_s)
    for trouble in carry_out(folder, job, prctl):
        note(trouble)
    state = folder.known_state()
    if not state.ended:
        record_loss(folder, state, f"the supervisor {ended}", count)


def _supervise(folder: JobFolder, job: Job, prctl: Prctl, writer: int) -> None:
    code = 70
    try:
        signal.pthread_sigmask(signal.SIG_BLOCK, WATCHED)
        for signum in WATCHED:
            signal.signal(signum, signal.SIG_DFL)
        adopt_orphans(prctl)

        def tell_starter(text: str) -> None:
            with contextlib.suppress(OSError):
                write_all(writer, text.encode())
            os.close(writer)

        Supervisor(folder, job, prctl).run(tell_starter)
        code = 0
    except BaseException:  # noqa: BLE001 - nothing may unwind into the copy of the keeper
        _note_traceback()
    finally:
        os._exit(code)


def _note_traceback() -> None:
    import traceback  # noqa: PLC0415 - wanted only when something of ours is broken

    note(traceback.format_exc())
