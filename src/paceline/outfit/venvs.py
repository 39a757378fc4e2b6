"""A virtual environment on a host, made once for what it is made from, and never left half made.

ROOT/KEY/           the environment, named after a hash of its inputs
ROOT/KEY/.whole     written last: without it, whatever lies there is thrown away
ROOT/KEY.lock       held while somebody makes it; a second one waits and finds it made
ROOT/KEY.log        what pip said
"""

from __future__ import annotations

import contextlib
import fcntl
import glob
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

_WHOLE = ".whole"
_MOST_LINES = 4


class CannotMake(Exception):
    """The environment could not be made; the message says why, and `hint` what to do."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


def describe_python() -> dict[str, Any]:
    """Say which wheels this Python takes."""
    name, version = platform.libc_ver()
    return {
        "version": ".".join(str(part) for part in sys.version_info[:3]),
        "implementation": sys.implementation.name,
        "machine": platform.machine(),
        "libc": name,
        "libc_version": version,
    }


def key_of(wish: Mapping[str, Any]) -> str:
    """Return the name of the environment that a wish leads to with this Python."""
    inputs = {
        "wish": wish,
        "python": [sys.version, os.path.realpath(sys.executable), sysconfig.get_platform()],
    }
    return hashlib.sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()[:16]


def find(root: str, wish: Mapping[str, Any]) -> dict[str, Any]:
    """Return the Python that an environment has or would have, and whether it is there."""
    folder = os.path.join(root, key_of(wish))
    python = os.path.join(folder, "bin", "python")
    return {"python": python, "there": _is_whole(folder, python)}


def _is_whole(folder: str, python: str) -> bool:
    return os.path.exists(os.path.join(folder, _WHOLE)) and os.access(python, os.X_OK)


def make(root: str, wish: Mapping[str, Any], wheels: str | None) -> dict[str, Any]:
    """Return the Python of an environment, made now or before.

    The wish holds the texts of `requirements` and `constraints`, more addresses of an `index`,
    and the digest of the `wheels` that are to be taken from their folder and from nowhere else.
    """
    os.makedirs(root, exist_ok=True)
    folder = os.path.join(root, key_of(wish))
    python = os.path.join(folder, "bin", "python")
    with _locked(f"{folder}.lock"):
        if _is_whole(folder, python):
            return {"python": python, "made": False}
        shutil.rmtree(folder, ignore_errors=True)
        try:
            _make(folder, python, wish, wheels)
        except CannotMake as error:
            shutil.rmtree(folder, ignore_errors=True)
            return {"error": str(error), "hint": error.hint or None}
    return {"python": python, "made": True}


def _make(folder: str, python: str, wish: Mapping[str, Any], wheels: str | None) -> None:
    pip = _bare(folder, python, wheels)
    words = [*pip, "install", "--no-input", "--disable-pip-version-check", "--no-cache-dir"]
    for name in ("requirements", "constraints"):
        path = os.path.join(folder, f"{name}.txt")
        with open(path, "w", encoding="utf-8") as file:
            file.write(wish[name])
        words += [f"--{name.rstrip('s')}", path]
    # Where we carry the wheels, nothing else may decide what is installed.
    words += ["--no-index", "--find-links", wheels] if wheels else []
    words += [word for index in wish.get("index") or () for word in ("--extra-index-url", index)]
    with open(f"{folder}.log", "wb") as log:
        done = subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            check=False,
        )
    if done.returncode != 0:
        raise CannotMake(_why(f"{folder}.log"), _hint(f"{folder}.log", carried=bool(wheels)))
    _finish(folder)


def _bare(folder: str, python: str, wheels: str | None) -> list[str]:
    """Make an environment with nothing in it; return the words that run a pip for it."""
    found = sorted(glob.glob(os.path.join(glob.escape(wheels), "pip-*.whl"))) if wheels else []
    without = ["--without-pip"] if found else []
    done = subprocess.run(
        [sys.executable, "-m", "venv", *without, folder],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    if done.returncode != 0:
        said = done.stdout.decode("utf-8", "replace").strip()
        if "ensurepip" in said or "No module named" in said:
            version = f"{sys.version_info[0]}.{sys.version_info[1]}"
            raise CannotMake(
                f"{sys.executable} cannot make virtual environments: ensurepip is not installed",
                f"on Debian and Ubuntu: sudo apt-get install -y python{version}-venv",
            )
        raise CannotMake(f"no virtual environment could be made: {said[-400:]}")
    # A wheel of pip runs as it lies there.
    return [python, os.path.join(found[-1], "pip")] if found else [python, "-m", "pip"]


def _finish(folder: str) -> None:
    with open(os.path.join(folder, f"{_WHOLE}.part"), "w", encoding="utf-8") as file:
        file.flush()
        os.fsync(file.fileno())
    os.replace(os.path.join(folder, f"{_WHOLE}.part"), os.path.join(folder, _WHOLE))


def _why(log: str) -> str:
    with open(log, encoding="utf-8", errors="replace") as file:
        lines = [line.strip() for line in file if line.strip()]
    return "pip could not install what is required: " + last_errors(lines)


def last_errors(lines: list[str]) -> str:
    """Return what pip says of its failure, without the versions that there are instead."""
    errors = [line for line in lines if line.startswith("ERROR")] or lines
    return " | ".join(
        re.sub(r" \(from versions: [^)]*\)", "", line) for line in errors[-_MOST_LINES:]
    )


def _hint(log: str, *, carried: bool) -> str:
    with open(log, encoding="utf-8", errors="replace") as file:
        text = file.read()
    if "No space left on device" in text:
        return "free some space on the host, or let `torch: cpu` take the smaller torch"
    if carried:
        return "the folder of wheels lacks something: `wheels: carry` downloads all that is needed"
    if "Failed to establish a new connection" in text or "Temporary failure in name" in text:
        return "the host reaches no package registry: `wheels: carry` brings the wheels along"
    return f"all that pip said is in {log} there"


@contextlib.contextmanager
def _locked(path: str) -> Iterator[None]:
    with open(path, "w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
