"""Starting a rehearsal's daemon, and ending it: in order, or after it was killed."""

from __future__ import annotations

import contextlib
import fcntl
import importlib.util
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from io import TextIOWrapper
from pathlib import Path

from paceline.errors import Conflict, EnvironmentFault, MissingProgram, PacelineError
from paceline.rehearsal.daemon import control
from paceline.rehearsal.daemon.card import Card, read_card
from paceline.rehearsal.daemon.folder import Folder
from paceline.rehearsal.machines.journal import Item, Journal
from paceline.rehearsal.machines.rates import read_rate_mbit
from paceline.rehearsal.machines.sweeping import Check, checks, sweep

_UP_WITHIN_S = 90.0
_ENDS_WITHIN_S = 90.0
_TURN_WITHIN_S = 30.0
_GONE_WITHIN_S = 10.0
_SEARCH = f"{os.environ.get('PATH', os.defpath)}:/usr/local/sbin:/usr/sbin:/sbin"
# What machines are made with, and the Debian packages that bring it.
_PROGRAMS = {
    "ip": "iproute2", "tc": "iproute2", "nft": "nftables", "sshd": "openssh-server",
    "ssh-keygen": "openssh-client", "sudo": "sudo", "sysctl": "procps", "unshare": "util-linux",
    "nsenter": "util-linux", "cp": "coreutils",
}  # fmt: skip
# sudo has a search path of its own, in which the environment that Paceline lives in is not.
_AS_ROOT = 'sudo -E env "PATH=$PATH" paceline'
_MODULES = ("moto", "flask", "flask_cors")


def require_rehearsal() -> None:
    """Say plainly what is missing for a rehearsal on this machine."""
    lacking = [name for name in _MODULES if importlib.util.find_spec(name) is None]
    if lacking:
        raise MissingProgram(
            f"the rehearsal is an extra, and not installed: no {', '.join(lacking)}",
            hint="pip install 'paceline[rehearsal]'",
        )
    if sys.platform != "linux":
        raise EnvironmentFault("a rehearsal makes its machines with Linux's namespaces")
    if os.geteuid() != 0:
        raise EnvironmentFault(
            "a rehearsal makes machines on this one, and needs root for it",
            hint=f"{_AS_ROOT} rehearsal start; the verbs with --rehearse then need sudo too",
        )
    missing = {
        package for name, package in _PROGRAMS.items() if shutil.which(name, path=_SEARCH) is None
    }
    if missing:
        packages = " ".join(sorted(missing))
        raise MissingProgram(f"not installed: {packages}", hint=f"apt-get install {packages}")


def start(folder: Folder, bandwidth: str = "") -> tuple[Card, bool]:
    """Return the rehearsal of a folder, and whether it was started now."""
    require_rehearsal()
    if bandwidth:
        read_rate_mbit(bandwidth)
    with _alone(folder) as lock:
        card = read_card(folder.card)
        if card is not None and card.ending:
            _end(card)
        elif card is not None and card.alive:
            if bandwidth and bandwidth != card.bandwidth:
                raise Conflict(
                    f"a rehearsal is up already, with links of {card.bandwidth}",
                    hint="paceline rehearsal stop",
                )
            return card, False
        if folder.journal.exists():
            _clear_up(folder)  # the one before was killed
        return _launch(folder, bandwidth, lock), True


def running(folder: Folder) -> Card | None:
    """Return the rehearsal that is up; None if there is none."""
    _require_root(folder)
    card = read_card(folder.card)
    return card if card is not None and card.alive and not card.ending else None


def stop(folder: Folder) -> tuple[Check, ...]:
    """End a rehearsal, and return what was found when all of it should be gone."""
    if not folder.path.exists():
        return ()
    _require_root(folder)
    with _alone(folder):
        card = read_card(folder.card)
        if card is not None and card.alive:
            with contextlib.suppress(PacelineError):  # then it is ended the other way
                control.ask(card.control, {"what": "stop"})
            _end(card)
        found = _clear_up(folder) if folder.journal.exists() else ()
        folder.lock.unlink()
        with contextlib.suppress(OSError):  # it was told to live where there is something else
            folder.path.rmdir()
        return found


def _require_root(folder: Folder) -> None:
    """Say whose a rehearsal is; whoever else looks sees none."""
    if folder.path.exists() and os.geteuid() != 0:
        raise EnvironmentFault(
            "the rehearsal here belongs to root, who started it", hint=f"{_AS_ROOT} …"
        )


@contextlib.contextmanager
def _alone(folder: Folder) -> Iterator[int]:
    """Keep others from starting or stopping at the same time; return the lock's handle.

    A daemon holds it as well until it is up, so that one whose starter was killed is no surprise.
    """
    deadline = time.monotonic() + _TURN_WITHIN_S
    while (file := _lock(folder)) is None:
        if time.monotonic() > deadline:
            raise Conflict(
                "somebody else is starting or stopping this rehearsal",
                hint="wait until they are done, and try again",
            )
        time.sleep(0.05)
    with file:
        yield file.fileno()


def _lock(folder: Folder) -> TextIOWrapper | None:
    """Take the lock, unless somebody has it, or has just taken its file away."""
    try:
        _make_folder(folder.path)
        file = folder.lock.open("w")
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if folder.lock.stat().st_ino == os.fstat(file.fileno()).st_ino:
            return file
    except (BlockingIOError, FileNotFoundError):
        pass
    file.close()
    return None


def _make_folder(path: Path) -> None:
    """Make a folder for root alone; those above it belong to whose place it is, as with sudo -E."""
    missing = [one for one in path.parents if not one.exists()]
    for one in reversed(missing):
        one.mkdir(exist_ok=True)
        owner = one.parent.stat()
        os.chown(one, owner.st_uid, owner.st_gid)
    path.mkdir(exist_ok=True, mode=0o700)


def _launch(folder: Folder, bandwidth: str, lock: int) -> Card:
    folder.card.unlink(missing_ok=True)
    journal = Journal(folder.journal)
    files = (folder.card, folder.log, folder.control)
    journal.add((*(Item("file", str(path)) for path in files), Item("folder", str(folder.home))))
    folder.home.mkdir(exist_ok=True)
    package = Path(__file__).resolve().parents[3]
    path = ":".join([str(package), *filter(None, [os.environ.get("PYTHONPATH")])])
    with folder.log.open("ab") as log:
        daemon = subprocess.Popen(
            (sys.executable, "-m", "paceline.rehearsal.daemon", str(folder.path), bandwidth,
             str(lock)),
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            pass_fds=(lock,), cwd="/", env={**os.environ, "PATH": _SEARCH, "PYTHONPATH": path},
        )  # fmt: skip
    # Whoever lives longer than the daemon buries it.
    threading.Thread(target=daemon.wait, daemon=True).start()
    try:
        return _wait_for_card(folder, daemon)
    except BaseException:
        daemon.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            daemon.wait(_ENDS_WITHIN_S)
        daemon.kill()
        _clear_up(folder)
        raise


def _wait_for_card(folder: Folder, daemon: subprocess.Popen[bytes]) -> Card:
    deadline = time.monotonic() + _UP_WITHIN_S
    while True:
        card = read_card(folder.card)
        if card is not None:
            return card
        if daemon.poll() is not None or time.monotonic() > deadline:
            said = folder.log.read_text(errors="replace").strip().splitlines()[-1:]
            raise EnvironmentFault(f"the rehearsal did not come up: {' '.join(said)}")
        time.sleep(0.05)


def _end(card: Card) -> None:
    """Wait for a daemon that was told to stop; end one that does not."""
    deadline = time.monotonic() + _ENDS_WITHIN_S
    while card.alive and time.monotonic() < deadline:
        time.sleep(0.05)
    if card.alive:
        with contextlib.suppress(ProcessLookupError):
            os.kill(card.pid, 9)
        while card.alive:
            time.sleep(0.05)


def _clear_up(folder: Folder) -> tuple[Check, ...]:
    """Take away what the journal still holds, look for all that it ever held, and forget it."""
    journal = Journal(folder.journal)
    deadline = time.monotonic() + _GONE_WITHIN_S
    while True:
        sweep(journal)
        found = checks(journal.all())
        left = [f"{check.kind}: {', '.join(check.left)}" for check in found if check.left]
        if not left:
            break
        # What the daemon had under way when it was killed goes on for a moment, such as a copy.
        if time.monotonic() > deadline:
            raise EnvironmentFault(
                f"could not be removed: {'; '.join(left)}",
                hint="`paceline rehearsal stop` once more tries again",
            )
        time.sleep(0.2)
    folder.journal.unlink(missing_ok=True)
    return found
