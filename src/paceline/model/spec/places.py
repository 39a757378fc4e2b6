"""The paths in a spec: relative to its folder, and to be there."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from paceline.model.spec.rules import Path as KeyPath
from paceline.model.spec.rules import Problem

_PATHS: tuple[KeyPath, ...] = (
    ("cluster", "hostfile"),
    ("cluster", "inventory"),
    ("data", "root"),
    ("job", "script"),
    ("job", "workdir"),
    ("runtime", "python"),
    ("runtime", "requirements"),
    ("runtime", "wheels"),
    ("runtime", "dockerfile"),
    ("runtime", "context"),
)
_CARRY = "carry"


def inside(data: Any, path: KeyPath) -> Any:
    """Return what stands at a path of plain data; None where there is nothing."""
    for part in path:
        data = data.get(part) if isinstance(data, dict) else None
    return data


def make_absolute(data: dict[str, Any], base_of: Callable[[KeyPath], Path]) -> None:
    """Make every path in the data absolute; `base_of` says what each is relative to."""
    for path in _PATHS:
        value = inside(data, path)
        if not isinstance(value, str) or not value.strip():
            continue
        if path == ("runtime", "python") and not _is_here(value, data):
            continue
        if path == ("runtime", "wheels") and value == _CARRY:
            continue
        inside(data, path[:-1])[path[-1]] = _absolute(value, base_of(path))
    entries = inside(data, ("cluster", "hosts"))
    for index, entry in enumerate(entries if isinstance(entries, list) else ()):
        if isinstance(entry, dict) and isinstance(entry.get("key"), str):
            base = base_of(("cluster", "hosts", index, "key"))
            entry["key"] = _absolute(entry["key"], base)


def _absolute(value: str, base: Path) -> str:
    return os.path.normpath(base / os.path.expanduser(value))  # noqa: PTH111 - never raises


def _is_here(python: str, data: dict[str, Any]) -> bool:
    """Whether a Python is a path of this machine, and no name, nor a path of hosts or images."""
    if inside(data, ("runtime", "kind")) == "docker":
        return False
    return "/" in python and inside(data, ("cluster", "provider")) in (None, "local")


def _lies_on_hosts(data: dict[str, Any]) -> bool:
    """Whether the job's folder is one of the hosts' own, of which nobody here knows."""
    if inside(data, ("cluster", "provider")) in (None, "local"):
        return False
    workdir = inside(data, ("job", "workdir"))
    elsewhere = isinstance(workdir, str) and "\0" not in workdir and not Path(workdir).is_dir()
    return inside(data, ("job", "sync")) is False or elsewhere


def missing_files(data: dict[str, Any]) -> Iterator[Problem]:
    """Yield a problem for every file or folder that is named and not there."""
    own: list[tuple[KeyPath, str, Callable[[Any], bool]]] = [
        (("job", "script"), "file", os.path.isfile),
        (("job", "workdir"), "folder", os.path.isdir),
    ]
    checks = [
        *(() if _lies_on_hosts(data) else own),
        (("cluster", "hostfile"), "file", os.path.isfile),
        (("cluster", "inventory"), "file", os.path.isfile),
        (("runtime", "requirements"), "file", os.path.isfile),
        (("runtime", "wheels"), "folder", os.path.isdir),
        (("runtime", "dockerfile"), "file", os.path.isfile),
        (("runtime", "context"), "folder", os.path.isdir),
    ]
    if _is_here(str(inside(data, ("runtime", "python"))), data):
        checks.append((("runtime", "python"), "file", os.path.isfile))
    for path, kind, there in checks:
        value = inside(data, path)
        # A word without a slash is a program's name; a NUL is somebody else's complaint.
        if isinstance(value, str) and "/" in value and "\0" not in value and not there(value):
            yield Problem(path, f"there is no {kind} {value}{_near(Path(value))}")


def _near(path: Path) -> str:
    try:
        names = [item.name for item in path.parent.iterdir()]
    except OSError:
        return ""
    found = get_close_matches(path.name, names, n=1)
    return f"; did you mean {found[0]}?" if found else ""
