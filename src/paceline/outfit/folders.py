"""A working folder on a host, kept as it is at home without sending what is there already.

Beside the folder lies its manifest: what was sent, by content, and what the file looked like on
this disk then. A file that has been touched here since is sent again; one that a job has made
here is left alone.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import glob
import hashlib
import json
import os
import shutil
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

_STALE_S = 24 * 3600.0
_BLOCK_BYTES = 1 << 20


def look(folder: str) -> dict[str, Any]:
    """Return digest and mode of the files that are here just as they were sent, and the links.

    What was sent and is not so any more stands under its name with nothing.
    """
    known = _manifest(folder)
    files = {
        name: [entry["digest"], entry["mode"]]
        if entry["seen"] == _seen(os.path.join(folder, name))
        else None
        for name, entry in known.items()
        if "digest" in entry
    }
    links = {name: entry["link"] for name, entry in known.items() if "link" in entry}
    return {"files": files, "links": links}


def settle(
    folder: str, draft: str, files: Mapping[str, tuple[str, int]], links: Mapping[str, str]
) -> None:
    """Take over the files of a draft, so that the folder holds what `files` and `links` say.

    `files` are digest and mode by name. Each appears at once or not at all: another job may be at
    work in the folder. What was sent before and is gone at home is removed. A file that was edited
    on its way is refused before anything changes: hosts would run different programs.
    """
    for name in (*files, *links):
        if name.startswith("/") or ".." in name.split("/") or "\0" in name:
            raise OSError(22, "leads out of its folder", name)
    os.makedirs(folder, exist_ok=True)
    with _locked(folder):
        _verify(draft, files)
        before = _manifest(folder)
        for name in before:
            if name not in files and name not in links:
                _remove(folder, name)
        for name, (_, mode) in files.items():
            _take_over(folder, draft, name, mode)
        for name, target in links.items():
            _link(os.path.join(folder, name), target)
        entries: dict[str, Any] = {name: {"link": target} for name, target in links.items()}
        for name, (digest, mode) in files.items():
            seen = _seen(os.path.join(folder, name))
            entries[name] = {"digest": digest, "mode": mode, "seen": seen}
        _write_manifest(folder, entries)
    shutil.rmtree(draft, ignore_errors=True)
    _sweep(folder)


def _sweep(folder: str) -> None:
    """Remove the drafts that somebody has left who was cut off in the middle, long ago."""
    parent, name = os.path.split(folder)
    for entry in os.listdir(parent):
        path = os.path.join(parent, entry)
        if entry.startswith(f"{name}.") and entry.endswith(".part") and os.path.isdir(path):
            with contextlib.suppress(OSError):
                if time.time() - os.stat(path).st_mtime > _STALE_S:
                    shutil.rmtree(path, ignore_errors=True)


def _verify(draft: str, files: Mapping[str, tuple[str, int]]) -> None:
    for name, (digest, _) in files.items():
        fresh = os.path.join(draft, name)
        if os.path.lexists(fresh) and _digest(fresh) != digest:
            why = "it changed while it was being sent; the same command again sends it anew"
            raise OSError(errno.EAGAIN, why, name)


def _digest(path: str) -> str:
    found = hashlib.sha256()
    with open(path, "rb") as file:
        while True:
            block = file.read(_BLOCK_BYTES)
            if not block:
                return found.hexdigest()
            found.update(block)


def _take_over(folder: str, draft: str, name: str, mode: int) -> None:
    place, fresh = os.path.join(folder, name), os.path.join(draft, name)
    if os.path.lexists(fresh):
        _make_way(folder, name)
        if os.path.isdir(place) and not os.path.islink(place):
            shutil.rmtree(place)
        os.replace(fresh, place)
        _forget_bytecode(place)
    os.chmod(place, mode)


def _forget_bytecode(place: str) -> None:
    """Remove what Python has compiled of a file before.

    It tells an old version by its size and the second of its time, and both can be the same: the
    times come from the clocks of several machines.
    """
    folder, name = os.path.split(place)
    stem, suffix = os.path.splitext(name)
    if suffix == ".py":
        kept = os.path.join(glob.escape(folder), "__pycache__")
        for old in glob.glob(os.path.join(kept, f"{glob.escape(stem)}.*.pyc")):
            with contextlib.suppress(OSError):
                os.unlink(old)


def _link(place: str, target: str) -> None:
    with contextlib.suppress(OSError):
        if os.readlink(place) == target:
            return
    os.makedirs(os.path.dirname(place), exist_ok=True)
    if os.path.isdir(place) and not os.path.islink(place):
        shutil.rmtree(place)
    draft = f"{place}.{os.getpid()}.part"
    os.symlink(target, draft)
    os.replace(draft, place)


def _make_way(folder: str, name: str) -> None:
    """Make the folders above a file; where a file or a link is now, a folder is to be."""
    path = folder
    for part in name.split("/")[:-1]:
        path = os.path.join(path, part)
        if os.path.islink(path) or os.path.isfile(path):
            os.unlink(path)
        os.makedirs(path, exist_ok=True)


def _remove(folder: str, name: str) -> None:
    """Remove a file that was sent, and the folders that are empty without it."""
    with contextlib.suppress(OSError):
        os.unlink(os.path.join(folder, name))
        parent = os.path.dirname(name)
        while parent:
            os.rmdir(os.path.join(folder, parent))
            parent = os.path.dirname(parent)


def _seen(path: str) -> list[int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return [status.st_size, status.st_mtime_ns, status.st_ino]


def _manifest_path(folder: str) -> str:
    return f"{folder}.manifest"


def _manifest(folder: str) -> dict[str, Any]:
    try:
        with open(_manifest_path(folder), encoding="utf-8") as file:
            found: dict[str, Any] = json.load(file)
    except (OSError, ValueError):
        return {}
    return found


def _write_manifest(folder: str, entries: Mapping[str, Any]) -> None:
    path = _manifest_path(folder)
    with open(f"{path}.part", "w", encoding="utf-8") as file:
        json.dump(entries, file)
    os.replace(f"{path}.part", path)


@contextlib.contextmanager
def _locked(folder: str) -> Iterator[None]:
    with open(f"{folder}.lock", "w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
