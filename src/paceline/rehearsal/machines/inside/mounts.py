"""The root of a machine: its layers, its devices, its own /proc, /sys, /run and control groups."""

from __future__ import annotations

import ctypes
import glob
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

_MS_RDONLY, _MS_REMOUNT, _MS_BIND, _MS_REC, _MS_PRIVATE = 1, 32, 4096, 16384, 1 << 18
_MNT_DETACH = 2
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty", "fuse", "net/tun", "kvm")
_LINKS = {"fd": "/proc/self/fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2",
          "ptmx": "pts/ptmx", "core": "/proc/kcore"}  # fmt: skip
_OLD_ROOT = ".machine-below"

_libc = ctypes.CDLL(None, use_errno=True)


def mount(source: str, target: str | Path, kind: str, flags: int = 0, options: str = "") -> None:
    """Mount something in this process's own mount namespace."""
    done = _libc.mount(
        source.encode(), str(target).encode(), kind.encode(), ctypes.c_ulong(flags),
        options.encode(),
    )  # fmt: skip
    if done != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"mount {kind} {source}: {os.strerror(code)}", str(target))


def enter_root(spec: Mapping[str, Any]) -> None:
    """Build the root that a spec describes, and move into it."""
    mount("none", "/", "", _MS_REC | _MS_PRIVATE)
    root = Path(spec["root"])
    options = f"lowerdir=/,upperdir={spec['upper']},workdir={spec['work']},index=off,xino=off"
    mount("overlay", root, "overlay", 0, options)
    for entry in spec["binds"]:
        bind(entry["from"], root / entry["to"].lstrip("/"), writable=entry["writable"])
    mount("proc", root / "proc", "proc")
    mount("sysfs", root / "sys", "sysfs")
    _make_devices(root / "dev")
    mount("tmpfs", root / "run", "tmpfs", 0, "mode=755")
    _mount_control_groups(root / "sys/fs/cgroup", spec["control_groups"])
    _move_into(root)


def bind(source: str, target: Path, *, writable: bool) -> None:
    """Show a folder at another place as well."""
    mount(source, target, "", _MS_BIND)
    if not writable:
        mount("none", target, "", _MS_BIND | _MS_REMOUNT | _MS_RDONLY)


def _make_devices(dev: Path) -> None:
    mount("tmpfs", dev, "tmpfs", 0, "mode=755")
    cards = [path[len("/dev/") :] for path in glob.glob("/dev/nvidia*")]  # noqa: PTH207
    for name in (*_DEVICES, *cards):
        _make_device(Path("/dev", name), dev / name)
    for name, target in _LINKS.items():
        (dev / name).symlink_to(target)
    for name, kind, options in (
        ("pts", "devpts", "newinstance,ptmxmode=0666,mode=0620,gid=5"),
        ("shm", "tmpfs", "mode=1777"),
        ("mqueue", "mqueue", ""),
    ):
        (dev / name).mkdir()
        mount(kind, dev / name, kind, 0, options)


def _make_device(source: Path, target: Path) -> None:
    try:
        found = source.stat()
    except OSError:
        return
    if source.is_char_device():
        target.parent.mkdir(exist_ok=True)
        os.mknod(target, found.st_mode, found.st_rdev)
        target.chmod(found.st_mode & 0o777)


def _mount_control_groups(folder: Path, groups: Sequence[Mapping[str, Any]]) -> None:
    """Show the machine its own control groups as if there were no others."""
    if any(group["version"] == 2 and len(groups) == 1 for group in groups):  # noqa: PLR2004
        mount("cgroup2", folder, "cgroup2")
        return
    mount("tmpfs", folder, "tmpfs", 0, "mode=755")
    for group in groups:
        place = folder / group["name"]
        place.mkdir()
        if group["version"] == 2:  # noqa: PLR2004 - the version of the interface
            mount("cgroup2", place, "cgroup2")
        else:
            mount("cgroup", place, "cgroup", 0, group["options"])


def _move_into(root: Path) -> None:
    old = root / _OLD_ROOT
    old.mkdir(exist_ok=True)
    os.chdir(root)
    if _libc.pivot_root(b".", _OLD_ROOT.encode()) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"pivot_root: {os.strerror(code)}", str(root))
    os.chroot(".")
    os.chdir("/")
    if _libc.umount2(f"/{_OLD_ROOT}".encode(), _MNT_DETACH) != 0:
        raise OSError(ctypes.get_errno(), "the old root cannot be let go of")
    Path("/", _OLD_ROOT).rmdir()
