"""Starts one process: own group, own log, own environment, and an end when its parent dies.

The standard library's `subprocess` would take several milliseconds to import, and would dispute
with us over who waits for children: as a subreaper, we wait for those of others too.
"""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Callable

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_RESTORED = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGPIPE, signal.SIGXFSZ)
_LOG_MODE = 0o644

Prctl = Callable[[int, int], int]


class StartFailure(Exception):
    """A process could not be started; the message says why, for people."""


def load_prctl() -> Prctl:
    """Return the system call that the standard library has no name for, or a stand-in."""
    try:
        import ctypes  # noqa: PLC0415 - some small Pythons come without it

        function = ctypes.CDLL(None).prctl
    except (ImportError, OSError, AttributeError):
        return lambda _option, _value: -1
    return lambda option, value: int(function(option, value, 0, 0, 0))


def adopt_orphans(prctl: Prctl) -> None:
    """Let descendants whose parent dies become our children, and not those of init."""
    prctl(_PR_SET_CHILD_SUBREAPER, 1)


@dataclass(frozen=True)
class Program:
    """What is to run, and where."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: str | None
    log_path: str


def exit_code_of(status: int) -> int:
    """Return what `waitpid` says as an exit code; minus the signal's number after a signal."""
    # The standard library has a name for it from Python 3.9 on.
    return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def spawn(program: Program, prctl: Prctl) -> int:
    """Start a process and return its pid once it runs the program; else StartFailure."""
    reader, writer = os.pipe()
    parent = os.getpid()
    try:
        pid = os.fork()
    except OSError as error:
        os.close(reader)
        os.close(writer)
        raise StartFailure(f"no more processes can be started: {error.strerror}") from error
    if pid == 0:
        _become(program, prctl, parent, writer)
    os.close(writer)
    # Closed by a successful exec, filled by a failed one.
    with os.fdopen(reader, "rb") as pipe:
        word = pipe.read().decode()
    if not word:
        return pid
    os.waitpid(pid, 0)
    step, _, number = word.partition(" ")
    raise StartFailure(_explain(program, step, int(number)))


def _become(program: Program, prctl: Prctl, parent: int, writer: int) -> None:
    """Turn the forked child into the program; never returns."""
    step = "fork"
    try:
        os.setpgid(0, 0)
        prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:
            os._exit(1)
        for signum in _RESTORED:
            signal.signal(signum, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        step = "log"
        log = os.open(program.log_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, _LOG_MODE)
        os.dup2(log, 1)
        os.dup2(log, 2)
        step = "cwd"
        if program.cwd is not None:
            os.chdir(program.cwd)
        step = "exec"
        os.execvpe(program.argv[0], program.argv, dict(program.env))  # noqa: S606 - no shell
    except OSError as error:
        os.write(writer, f"{step} {error.errno or errno.EIO}".encode())
    except (ValueError, TypeError):
        os.write(writer, f"{step} {errno.EINVAL}".encode())
    finally:
        os._exit(127)


def _explain(program: Program, step: str, number: int) -> str:
    """Say for people why a program could not be started."""
    reason = os.strerror(number)
    name = program.argv[0]
    if step == "exec" and number == errno.ENOENT:
        return _explain_absence(program)
    sentences = {
        "log": f"its log {program.log_path} cannot be written: {reason}",
        "cwd": f"the folder {program.cwd} to run in cannot be entered: {reason}",
    }
    reasons = {
        errno.EACCES: f"{name} may not be executed: {reason}",
        errno.ENOEXEC: f"{name} is not a program: it lacks a first line such as '#!/bin/sh'",
    }
    return sentences.get(step) or reasons.get(number) or f"{name} cannot be started: {reason}"


def _explain_absence(program: Program) -> str:
    name = program.argv[0]
    if "/" not in name:
        return f"there is no program {name!r} on PATH ({program.env.get('PATH', os.defpath)})"
    if os.access(name if name.startswith("/") else f"{program.cwd or '.'}/{name}", os.F_OK):
        return f"{name} names an interpreter in its first line that does not exist"
    return f"there is no program {name}"
