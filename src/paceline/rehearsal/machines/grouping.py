"""Control groups for machines: their share of the processors, and their memory.

Both versions of the kernel's interface are served. What it does not allow here is not set: then
a machine has no limit of that kind, and `limits` says so.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from paceline.errors import EnvironmentFault
from paceline.supervisor import procfs

_PERIOD_US = 100_000
_SHARES_PER_CORE = 1024
_MOUNTINFO = Path("/proc/self/mountinfo")
_MEMBERSHIP = Path("/proc/self/cgroup")
_CPUSET = ("cpuset.mems", "cpuset.cpus")
_ENDS_WITHIN_S = 20.0


@dataclass(frozen=True)
class Hierarchy:
    """One tree of control groups, and the folder of the group that we ourselves are in."""

    controllers: tuple[str, ...]
    folder: Path
    version: int

    @property
    def name(self) -> str:
        """How its mount point is called."""
        if not self.controllers:
            return "unified"
        return ",".join(self.controllers).removeprefix("name=")

    @property
    def options(self) -> str:
        """What mounts the same tree elsewhere."""
        words = ",".join(self.controllers)
        return f"none,{words}" if words.startswith("name=") else words


def hierarchies(
    mountinfo: str | None = None, membership: str | None = None
) -> tuple[Hierarchy, ...]:
    """Return the trees of this machine."""
    mounts = (mountinfo or _MOUNTINFO.read_text()).splitlines()
    ours = _own_paths(membership or _MEMBERSHIP.read_text())
    found: dict[str, Hierarchy] = {}
    for line in mounts:
        words = line.split()
        kind, options = words[words.index("-") + 1], words[-1].split(",")
        if kind == "cgroup2" and "" in ours:
            key, version = "", 2
        elif kind == "cgroup":
            key = next((one for one in ours if one and set(one.split(",")) <= set(options)), "")
            version = 1
            if not key:
                continue
        else:
            continue
        names = tuple(key.split(",")) if key else ()
        top = Path(words[4])
        own = top / ours[key].lstrip("/")
        found.setdefault(key, Hierarchy(names, own if own.is_dir() else top, version))
    return tuple(found.values())


def _own_paths(membership: str) -> dict[str, str]:
    lines = (line.split(":", 2) for line in membership.splitlines())
    return {controllers: path for _, controllers, path in lines}


@dataclass(frozen=True)
class Limits:
    """What a machine may use; None is "as much as there is"."""

    vcpus: int
    memory_bytes: int | None


def folders_of(name: str, trees: tuple[Hierarchy, ...]) -> tuple[Path, ...]:
    """Return the folders of a control group in all trees."""
    return tuple(tree.folder / name for tree in trees)


def make_group(name: str, limits: Limits, trees: tuple[Hierarchy, ...]) -> tuple[str, ...]:
    """Make a control group in every tree; return what the kernel does not let us limit here."""
    open_ends = {"cpu", "memory"}
    for tree in trees:
        folder = tree.folder / name
        _make_folders(tree, folder)
        open_ends -= _set_limits(tree, folder, limits)
    return tuple(sorted(open_ends))


def _make_folders(tree: Hierarchy, folder: Path) -> None:
    inner = [folder, *(one for one in folder.parents if one.is_relative_to(tree.folder))]
    for one in reversed(inner):
        if one == tree.folder:
            _delegate(tree, one)
            continue
        one.mkdir(exist_ok=True)
        if "cpuset" in tree.controllers:
            for name in _CPUSET:  # empty in a new group, which then takes no process
                _write(one / name, (one.parent / name).read_text())
        if one != folder:
            _delegate(tree, one)


def _delegate(tree: Hierarchy, folder: Path) -> None:
    """Let the groups below a group have limits, which version 2 wants to be asked for."""
    if tree.version == 2:  # noqa: PLR2004 - the version of the interface
        for name in ("cpu", "memory", "pids"):
            _write(folder / "cgroup.subtree_control", f"+{name}")


def _set_limits(tree: Hierarchy, folder: Path, limits: Limits) -> set[str]:
    wishes = _wishes_v1(tree, limits) if tree.version == 1 else _wishes_v2(limits)
    return {name.partition(".")[0] for name, value in wishes if _write(folder / name, value)}


def _wishes_v1(tree: Hierarchy, limits: Limits) -> list[tuple[str, str]]:
    wishes = []
    if "cpu" in tree.controllers:
        wishes.append(("cpu.shares", str(_SHARES_PER_CORE * limits.vcpus)))
        if limits.vcpus < (os.cpu_count() or 1):
            wishes.append(("cpu.cfs_quota_us", str(_PERIOD_US * limits.vcpus)))
    if "memory" in tree.controllers and limits.memory_bytes is not None:
        wishes.append(("memory.limit_in_bytes", str(limits.memory_bytes)))
    return wishes


def _wishes_v2(limits: Limits) -> list[tuple[str, str]]:
    wishes = [("cpu.weight", str(min(10_000, 100 * limits.vcpus)))]
    if limits.vcpus < (os.cpu_count() or 1):
        wishes.append(("cpu.max", f"{_PERIOD_US * limits.vcpus} {_PERIOD_US}"))
    if limits.memory_bytes is not None:
        wishes.append(("memory.max", str(limits.memory_bytes)))
    return wishes


def _write(path: Path, text: str) -> bool:
    try:
        path.write_text(text)
    except OSError:
        return False
    return True


def processes_in(folder: Path) -> list[procfs.ProcessEntry]:
    """Return the living processes in a control group and in all groups below it."""
    found = []
    for path in folder.rglob("cgroup.procs"):
        with contextlib.suppress(OSError):
            found += [procfs.entry_of(int(word)) for word in path.read_text().split()]
    return [entry for entry in found if entry is not None and entry.alive]


def end_all(folder: Path) -> None:
    """End every process in a control group, which is ours alone."""
    deadline = time.monotonic() + _ENDS_WITHIN_S
    while left := processes_in(folder):
        for entry in left:
            procfs.send(entry, signal.SIGKILL)
        if time.monotonic() > deadline:
            pids = ", ".join(str(entry.pid) for entry in left)
            raise EnvironmentFault(f"processes in {folder} do not end: {pids}")
        time.sleep(0.02)


def remove_group(folder: Path) -> None:
    """Remove a control group and the groups below it, which no process is in any more."""
    deadline = time.monotonic() + _ENDS_WITHIN_S
    while folder.is_dir():
        inner = sorted((path for path in folder.rglob("*") if path.is_dir()), reverse=True)
        for path in (*inner, folder):
            with contextlib.suppress(OSError):
                path.rmdir()
        if not folder.is_dir():
            return
        if time.monotonic() > deadline:
            raise EnvironmentFault(f"the control group {folder} cannot be removed")
        time.sleep(0.02)
