"""The layer between this machine's files and those of a rehearsed machine.

It shows the programs and settings of this machine, hides what is its user's (homes, /tmp, /run,
/srv, anything unusual), and puts in what a rented machine has: its own users, settings, programs
that switch it off, and a Python with torch.
"""

from __future__ import annotations

import json
import os
import stat
import sys
from pathlib import Path

from paceline.errors import EnvironmentFault
from paceline.rehearsal.machines.registry import MIRROR
from paceline.rehearsal.machines.rules import NAMES_ADDRESS
from paceline.rehearsal.machines.wheels import installed_with, write_wheel

# What is there for all programs; everything else of the root folder is hidden.
_SHOWN = ("bin", "etc", "lib", "lib32", "lib64", "libx32", "opt", "sbin", "usr", "var")
_EMPTY = {
    "boot": 0o755, "dev": 0o755, "home": 0o755, "media": 0o755, "mnt": 0o755, "proc": 0o555,
    "root": 0o711, "run": 0o755, "srv": 0o755, "sys": 0o555, "tmp": 0o1777,
    "var/tmp": 0o1777, "var/log": 0o755, "var/mail": 0o755, "var/lib/cloud": 0o755,
    "var/lib/docker": 0o711, "etc/ssh": 0o755, "etc/sudoers.d": 0o750, "etc/docker": 0o755,
    "etc/apt/sources.list.d": 0o755,
}  # fmt: skip
_FIRST_USER_ID = 1000
_NOBODY = 65534
_OPAQUE = "trusted.overlay.opaque"
_PROGRAMS = Path(__file__).parent / "programs"
_PROGRAM_PLACES = {
    "shutdown": ("shutdown", "poweroff", "halt", "reboot"),
    "systemctl": ("systemctl",),
    "systemd-run": ("systemd-run",),
    "cloud-init": ("cloud-init",),
}
_PYTORCH = Path("opt/pytorch")
_WHEELS = _PYTORCH / "wheels"
# What a Deep Learning AMI has; what these need comes along. What is not here is left out.
_PACKAGES = ("torch", "numpy", "pillow", "lmdb", "pip", "setuptools", "jupyterlab", "fabric")
# Nothing else is reached, and trying again would not help.
_PIP = f"[global]\nfind-links = /{_WHEELS}\nretries = 0\n"
_SUDOERS = """\
Defaults env_reset
root ALL=(ALL:ALL) ALL
@includedir /etc/sudoers.d
"""
_SSHD = """\
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
UsePAM no
UseDNS no
PrintMotd no
X11Forwarding no
AcceptEnv LANG LC_*
SetEnv PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
Subsystem sftp internal-sftp
"""


def make_base(folder: Path) -> None:
    """Fill the layer."""
    folder.mkdir(parents=True)
    folder.chmod(0o755)
    for name, mode in _EMPTY.items():
        _empty(folder / name, mode)
    for path in python_folders():
        top = path.relative_to("/").parts[0]
        _empty(folder / top, _EMPTY.get(top, 0o755))
        (folder / path.relative_to("/")).mkdir(parents=True, exist_ok=True)
    _hide(folder)
    _write_settings(folder / "etc")
    _put_programs(folder)
    _make_python(folder)


def python_folders() -> tuple[Path, ...]:
    """Return the folders of this program's Python that are to be shown in every machine."""
    found: list[Path] = []
    for path in (Path(sys.base_prefix).resolve(), Path(sys.prefix).resolve()):
        known = any(path.is_relative_to(one) for one in (Path("/usr"), Path("/opt"), *found))
        if not known:
            found.append(path)
    return tuple(found)


def _hide(folder: Path) -> None:
    """White out what the root folder has besides the usual."""
    for path in Path("/").iterdir():
        if path.name not in _SHOWN and not (folder / path.name).exists():
            os.mknod(folder / path.name, stat.S_IFCHR, os.makedev(0, 0))


def _empty(path: Path, mode: int) -> None:
    """Make a folder that shows nothing of the one below it."""
    for parent in reversed(path.parents):
        parent.mkdir(exist_ok=True)
    path.mkdir(exist_ok=True)
    path.chmod(mode)
    try:
        os.setxattr(path, _OPAQUE, b"y")
    except OSError as error:
        raise EnvironmentFault(
            f"the file system of {path} cannot hold the layers of machines: {error.strerror}",
            hint="choose another folder with --folder, on ext4, xfs or tmpfs",
        ) from error


def _write_settings(etc: Path) -> None:
    users, groups = _system_users()
    for name, text, mode in (
        ("passwd", users, 0o644),
        ("group", groups, 0o644),
        ("shadow", _shadow(users), 0o640),
        ("gshadow", "", 0o640),
        ("sudoers", _SUDOERS, 0o440),
        ("hostname", "localhost\n", 0o644),
        ("hosts", "127.0.0.1 localhost\n", 0o644),
        ("resolv.conf", f"nameserver {NAMES_ADDRESS}\noptions timeout:1 attempts:2\n", 0o644),
        ("fstab", "", 0o644),
        ("environment", "", 0o644),
        # Whatever there is to install is on this machine already: there is no way out.
        ("apt/sources.list", "", 0o644),
        ("ssh/sshd_config", _SSHD, 0o644),
        ("pip.conf", _PIP, 0o644),
        ("docker/daemon.json", json.dumps({"registry-mirrors": [MIRROR]}), 0o644),
    ):  # fmt: skip
        path = etc / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)


def _system_users() -> tuple[str, str]:
    """Return this machine's users and groups without its people."""

    def kept(path: str, field: int) -> str:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
        return "".join(f"{line}\n" for line in lines if _is_system(line.split(":"), field))

    return kept("/etc/passwd", 2), kept("/etc/group", 2)


def _is_system(words: list[str], field: int) -> bool:
    if len(words) <= field or not words[field].isdigit():
        return False
    number = int(words[field])
    return number < _FIRST_USER_ID or number == _NOBODY


def _shadow(users: str) -> str:
    return "".join(f"{line.split(':')[0]}:*:19000:0:99999:7:::\n" for line in users.splitlines())


def _put_programs(folder: Path) -> None:
    """Put our own shutdown and its like where a user's PATH finds them first."""
    for source, names in _PROGRAM_PLACES.items():
        content = (_PROGRAMS / source).read_bytes()
        for name in names:
            for place in ("usr/local/sbin", "usr/sbin", "usr/bin"):
                path = folder / place / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
                path.chmod(0o755)


def _make_python(folder: Path) -> None:
    """Make /opt/pytorch, an environment as on a Deep Learning AMI, and let PATH lead to it."""
    interpreter = Path(getattr(sys, "_base_executable", sys.executable)).resolve()
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    place = folder / _PYTORCH
    site = place / "lib" / version / "site-packages"
    site.mkdir(parents=True)
    (place / "pyvenv.cfg").write_text(
        f"home = {interpreter.parent}\ninclude-system-site-packages = false\n"
    )
    (place / "bin").mkdir()
    for name in ("python3", "python", version):
        (place / "bin" / name).symlink_to(interpreter)
    _put_packages(place, site)
    share = Path(sys.prefix, "share/jupyter")
    if share.is_dir():
        (place / "share").mkdir()
        (place / "share/jupyter").symlink_to(share)
    for program, module in (
        ("torchrun", "torch.distributed.run"), ("pip", "pip"), ("jupyter-lab", "jupyterlab"),
    ):  # fmt: skip
        _put_script(place / "bin" / program, f'exec /{_PYTORCH}/bin/python3 -m {module} "$@"\n')
    for name in ("python3", "python", "torchrun", "pip", "jupyter-lab"):
        path = folder / "usr/local/bin" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        _put_script(path, f'exec /{_PYTORCH}/bin/{name} "$@"\n')


def _put_packages(place: Path, site: Path) -> None:
    """Let packages of this machine be found by that Python, and by the pip of any other."""
    (folder := place / "wheels").mkdir()
    for package in installed_with(_PACKAGES):
        apart = place / "packages" / package.name
        apart.mkdir(parents=True)
        write_wheel(package, folder, f"/{_PYTORCH}/packages/{package.name}")
        for source in package.parts():
            for shown in (site, apart) if source.suffix != ".dist-info" else (site,):
                if not (shown / source.name).is_symlink():
                    (shown / source.name).symlink_to(source)


def _put_script(path: Path, line: str) -> None:
    path.write_text(f"#!/bin/sh\n{line}")
    path.chmod(0o755)
