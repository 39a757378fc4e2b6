"""A job's folder: its files, its lock, and a last state that a full disk cannot lose."""
# ruff: noqa: PTH103, PTH105, PTH108, PTH112, PTH116, PTH118, PTH123
# Those rules ask for pathlib, whose import would add a third to the start of a job.

from __future__ import annotations

import contextlib
import fcntl
import json
import os

from paceline.errors import Conflict, NotFound, StorageError, UsageError
from paceline.supervisor.job import (
    EVENTS_FOLDER,
    JOB_FILE,
    JOB_VARIABLE,
    LOGS_FOLDER,
    OUT_FOLDER,
    OUT_VARIABLE,
    STATE_FILE,
    Job,
    JobState,
    Notice,
)

# The same as in `paceline.events`, which would take `socket` and `typing` along at each start.
EVENTS_VARIABLE = "PACELINE_EVENTS"
LOCK_FILE = "supervisor.lock"
DIARY_FILE = "supervisor.log"
STOP_FILE = "stop"
RESERVE_FILE = "state.reserve"

# Room for the longest state that we write: some hundred processes and one excerpt.
RESERVE_BYTES = 128 * 1024


class JobFolder:
    """The folder of one job on its host."""

    def __init__(self, path: str) -> None:
        self.path = os.path.realpath(path)

    def within(self, *names: str) -> str:
        """Return the path of something in the folder."""
        return os.path.join(self.path, *names)

    def log_path(self, process: str) -> str:
        """Return the path of a process's log."""
        return self.within(LOGS_FOLDER, f"{process}.log")

    def variables(self, job_id: str) -> dict[str, str]:
        """Return the environment that tells a process which job it belongs to."""
        return {
            JOB_VARIABLE: job_id,
            EVENTS_VARIABLE: self.within(EVENTS_FOLDER),
            OUT_VARIABLE: self.within(OUT_FOLDER),
        }

    def exists(self) -> bool:
        """Whether the folder is still there."""
        return os.path.isdir(self.path)

    def create(self) -> None:
        """Make the folders that the job will write to, and the reserve for its last state."""
        try:
            for name in (EVENTS_FOLDER, LOGS_FOLDER, OUT_FOLDER):
                os.makedirs(self.within(name), exist_ok=True)
            with open(self.within(RESERVE_FILE), "wb") as reserve:
                reserve.write(b" " * RESERVE_BYTES)
        except OSError as error:
            raise cannot_write(self.path, error) from error

    def read_job(self) -> Job:
        """Read what to start."""
        path = self.within(JOB_FILE)
        try:
            with open(path, encoding="utf-8") as file:
                job = Job.from_json(file.read())
        except FileNotFoundError as error:
            raise NotFound(
                f"there is no job in {self.path}", hint=f"Write {JOB_FILE} there first."
            ) from error
        except OSError as error:
            raise cannot_read(path, error) from error
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise UsageError(f"{path} does not describe a job: {error!r}") from error
        _check_names(job, path)
        return job

    def read_state(self) -> JobState | None:
        """Read what has become of the job; None before its start."""
        path = self.within(STATE_FILE)
        try:
            with open(path, encoding="utf-8") as file:
                return JobState.from_json(file.read())
        except FileNotFoundError:
            return None
        except OSError as error:
            raise cannot_read(path, error) from error
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise StorageError(f"{path} is damaged: {error!r}") from error

    def known_state(self) -> JobState:
        """Read the state of a job that has been started; else NotFound."""
        state = self.read_state()
        if state is None:
            raise NotFound(f"no job has been started in {self.path}")
        return state

    def state_version(self) -> tuple[int, int] | None:
        """Return what differs from one writing of the state to the next; None before the first."""
        try:
            status = os.stat(self.within(STATE_FILE))
        except OSError:
            return None
        return status.st_ino, status.st_mtime_ns

    def write_state(self, state: JobState) -> None:
        """Replace the state at once; once it is the last, on a full disk too."""
        data = state.to_json().encode()
        try:
            _replace(self.within(STATE_FILE), data)
        except OSError:
            if not state.ended:
                raise
            self._write_into_reserve(data)
        if state.ended:
            remove(self.within(RESERVE_FILE))

    def report_notice(self, job: Job, notice: Notice) -> None:
        """Report that the machine is taken back, as an event beside those of its ranks."""
        rank = min((rank for process in job.processes for rank in process.ranks), default=0)
        event = {
            "kind": "interruption", "rank": rank, "t": notice.seen_at,
            "action": notice.action, "at": notice.at,
        }  # fmt: skip
        path = self.within(EVENTS_FOLDER, f"host-of-rank-{rank}.jsonl")
        with contextlib.suppress(OSError), open(path, "a", encoding="utf-8") as file:
            file.write(json.dumps(event) + "\n")

    def _write_into_reserve(self, data: bytes) -> None:
        # The blocks of the reserve are ours already, so that this needs no free space.
        path = self.within(RESERVE_FILE)
        descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        try:
            write_all(descriptor, data)
            os.ftruncate(descriptor, len(data))
        finally:
            os.close(descriptor)
        os.replace(path, self.within(STATE_FILE))

    def try_lock(self) -> int | None:
        """Take the job's lock; None while a supervisor, or whoever buries one, holds it.

        Unlike a pid, a lock cannot outlive its holder nor pass to a stranger.
        """
        path = self.within(LOCK_FILE)
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise cannot_write(path, error) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        except OSError as error:
            os.close(descriptor)
            raise StorageError(
                f"{path} cannot be locked: {error.strerror}",
                hint="Keep jobs on a file system that knows locks, such as a local disk.",
            ) from error
        return descriptor

    def claim(self) -> int:
        """Take the lock for a start; Conflict where the folder has had its job."""
        lock = self.try_lock()
        if lock is None:
            raise Conflict(
                f"the job in {self.path} is running",
                hint="Follow it, or stop it before you start another.",
            )
        try:
            state = self.read_state()
        except StorageError:
            os.close(lock)
            raise
        if state is not None:
            os.close(lock)
            raise Conflict(
                f"the job in {self.path} has been run before",
                hint="A folder serves one job, once: start the next in a folder of its own.",
            )
        return lock

    def ask_to_stop(self, grace_s: float) -> None:
        """Leave word of how long the processes have to end by themselves."""
        with contextlib.suppress(OSError):
            _replace(self.within(STOP_FILE), repr(float(grace_s)).encode())

    def asked_grace_s(self) -> float | None:
        """Return the time that a stop request allows, if it names one."""
        try:
            with open(self.within(STOP_FILE), encoding="utf-8") as file:
                return float(file.read())
        except (OSError, ValueError):
            return None


def _check_names(job: Job, path: str) -> None:
    names = [process.name for process in job.processes]
    if not names:
        raise UsageError(f"{path} has no process to start")
    for process in job.processes:
        plain = process.name and "/" not in process.name and "\0" not in process.name
        if not plain or process.name.startswith("."):
            raise UsageError(f"{path}: {process.name!r} cannot be the name of a log file")
        if not process.argv:
            raise UsageError(f"{path}: {process.name} has no program to start")
    if len(set(names)) != len(names):
        raise UsageError(f"{path} has two processes of the same name")


def _replace(path: str, data: bytes) -> None:
    draft = f"{path}.tmp"
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
    try:
        write_all(descriptor, data)
    except OSError:
        remove(draft)
        raise
    finally:
        os.close(descriptor)
    os.replace(draft, path)


def write_all(descriptor: int, data: bytes) -> None:
    """Write all of the data, however small the pieces that the system takes."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def touch(path: str | None) -> None:
    """Make a file look as if it were written now; not being able to disturbs nobody."""
    if path is None:
        return
    with contextlib.suppress(OSError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644))
        os.utime(path)


def remove(path: str) -> None:
    """Remove a file if it is there and can be removed."""
    with contextlib.suppress(OSError):
        os.unlink(path)


def read_tail(path: str, size_bytes: int) -> bytes:
    """Return the last bytes of a file; nothing where it cannot be read."""
    try:
        with open(path, "rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - size_bytes))
            return file.read(size_bytes)
    except OSError:
        return b""


def cannot_write(path: str, error: OSError) -> StorageError:
    """Return the error for a path that cannot be written."""
    return StorageError(
        f"{path} cannot be written: {error.strerror}",
        hint="Free some space, or choose a folder that you may write to.",
    )


def cannot_read(path: str, error: OSError) -> StorageError:
    """Return the error for a path that cannot be read."""
    return StorageError(f"{path} cannot be read: {error.strerror}")
