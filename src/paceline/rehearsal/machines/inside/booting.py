"""cloud-init's part: what a machine does at its first boot, and what it does at every boot."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import pwd
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

_CLOUD = Path("/var/lib/cloud")
_RESULT = Path("/run/cloud-init/result.json")
_LOG = "/var/log/cloud-init-output.log"
_USER_ID = 1000
_SSH = Path("/etc/ssh")
_KEY_NAMES = ("ed25519", "ecdsa", "rsa")
# What useradd and systemd's logins give the user of a real machine; rootless containers need both.
_SUBORDINATE_IDS = "100000:65536"
_SESSION_FOLDER = Path(f"/run/user/{_USER_ID}")
_SESSION = """\
Match User {user}
    SetEnv PATH={path} XDG_RUNTIME_DIR={folder}
"""
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Boot:
    """One boot of one machine, in the stages that cloud-init has."""

    def __init__(self, spec: Mapping[str, Any]) -> None:
        self._spec = spec
        self._data: Mapping[str, Any] = spec["user_data"]
        self._own = _CLOUD / "instances" / spec["instance_id"]

    def before_services(self) -> None:
        """Names, keys, users, files: everything that sshd and the user's programs rely on."""
        first = self._begin()
        self._name_itself()
        self._write_facts()
        if first:
            self._add_user()
            self._make_host_keys()
        self._open_session()
        self._run_script("bootcmd", self._data.get("bootcmd"))
        if first:
            for entry in self._data.get("write_files", ()):
                self._guarded(f"write_files {entry['path']}", lambda entry=entry: write_file(entry))

    def after_services(self) -> None:
        """Run the scripts of every boot, and at the first one those of the user."""
        for script in sorted((_CLOUD / "scripts/per-boot").glob("*")):
            if os.access(script, os.X_OK):
                self._run((str(script),))
        mark = self._own / "sem/config_scripts_user.once"
        if not mark.exists():
            self._touch(mark)
            self._run_script("runcmd", self._data.get("runcmd"))
            self._run_script("part-001", self._data.get("script"))
        _RESULT.write_text(json.dumps({"v1": {"datasource": "DataSourceEc2Local", "errors": []}}))
        say("cloud-init finished")

    def _begin(self) -> bool:
        """Make this instance the one that is at work; tell whether this is its first boot."""
        mark = self._own / "sem/config_users_groups.once"
        for folder in ("scripts/per-boot", "instances"):
            (_CLOUD / folder).mkdir(parents=True, exist_ok=True)
        _RESULT.parent.mkdir(parents=True, exist_ok=True)
        link = _CLOUD / "instance"
        if link.is_symlink():
            link.unlink()
        link.symlink_to(self._own)
        first = not mark.exists()
        self._touch(mark)
        return first

    def _touch(self, mark: Path) -> None:
        mark.parent.mkdir(parents=True, exist_ok=True)
        mark.touch()

    def _name_itself(self) -> None:
        name, address = self._spec["hostname"], self._spec["address"]
        Path("/etc/hostname").write_text(f"{name}\n")
        domain = self._spec["domain"]
        Path("/etc/hosts").write_text(
            f"127.0.0.1 localhost\n{address} {name}.{domain} {name}\n::1 localhost ip6-localhost\n"
        )

    def _write_facts(self) -> None:
        """Say what kind of machine this is, for those who cannot see it in /proc."""
        place = Path("/run/paceline/machine.json")
        place.parent.mkdir(exist_ok=True)
        place.write_text(json.dumps(self._spec["facts"]))

    def _add_user(self) -> None:
        """Make the image's default user, if the image does not have it from an earlier life."""
        user = self._spec["user"]
        home = Path("/home", user)
        try:
            pwd.getpwnam(user)
        except KeyError:
            _append("/etc/passwd", f"{user}:x:{_USER_ID}:{_USER_ID}::{home}:/bin/bash")
            _append("/etc/group", f"{user}:x:{_USER_ID}:")
            _append("/etc/shadow", f"{user}:*:19000:0:99999:7:::")
            for path in ("/etc/subuid", "/etc/subgid"):
                _append(path, f"{user}:{_SUBORDINATE_IDS}")
            session = _SESSION.format(user=user, path=_PATH, folder=_SESSION_FOLDER)
            _append("/etc/ssh/sshd_config", session)
            shutil.copytree("/etc/skel", home)
            home.chmod(0o750)
            _give(home, _USER_ID)
        rights = Path("/etc/sudoers.d/90-cloud-init-users")
        rights.parent.mkdir(exist_ok=True)
        rights.write_text(f"{user} ALL=(ALL) NOPASSWD:ALL\n")
        rights.chmod(0o440)
        self._trust(home / ".ssh")

    def _open_session(self) -> None:
        """Make the folder that whoever logs in has for sockets and the like."""
        _SESSION_FOLDER.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.chown(_SESSION_FOLDER, _USER_ID, _USER_ID)

    def _trust(self, folder: Path) -> None:
        """Add the keys of the key pair; those of an image's earlier life stay, as on EC2."""
        keys = "".join(f"{key}\n" for key in self._spec["authorised_keys"])
        folder.mkdir(mode=0o700, exist_ok=True)
        listed = folder / "authorized_keys"
        with listed.open("a") as file:
            file.write(keys)
        listed.chmod(0o600)
        _give(folder, _USER_ID)

    def _make_host_keys(self) -> None:
        """Take the host keys of the user data; without any, make new ones."""
        for path in _SSH.glob("ssh_host_*"):
            path.unlink()
        given: Mapping[str, str] = self._data.get("ssh_keys", {})
        for name in _KEY_NAMES:
            if f"{name}_private" in given:
                private = _SSH / f"ssh_host_{name}_key"
                _write(private, given[f"{name}_private"].rstrip().encode() + b"\n", 0o600)
                public = given.get(f"{name}_public", "").strip()
                _write(private.with_suffix(".pub"), f"{public}\n".encode(), 0o644)
        if not given:
            key = str(_SSH / "ssh_host_ed25519_key")
            self._run(("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key))

    def _run_script(self, name: str, text: str | None) -> None:
        if text:
            script = self._own / "scripts" / name
            script.parent.mkdir(parents=True, exist_ok=True)
            _write(script, text.encode(), 0o700)
            self._run((str(script),))

    def _run(self, argv: Sequence[str]) -> None:
        with open(_LOG, "ab") as log:  # noqa: PTH123 - a plain file, opened to append
            try:
                done = subprocess.run(
                    argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, check=False
                )
            except OSError as error:
                say(f"cloud-init: {argv[0]}: {error}")
                return
        if done.returncode != 0:
            say(f"cloud-init: {argv[0]} ended with exit code {done.returncode}; see {_LOG}")

    def _guarded(self, what: str, act: Any) -> None:
        try:
            act()
        except (OSError, ValueError, KeyError, LookupError) as error:
            say(f"cloud-init: {what}: {error}")


def write_file(entry: Mapping[str, Any]) -> None:
    """Write one file of the user data."""
    path = Path(entry["path"])
    path.parent.mkdir(parents=True, exist_ok=True)
    content = base64.b64decode(entry["content"])
    if entry.get("append"):
        content = (path.read_bytes() if path.exists() else b"") + content
    _write(path, content, int(str(entry.get("permissions") or "0644"), 8))
    user, _, group = str(entry.get("owner") or "root:root").partition(":")
    shutil.chown(path, user or "root", group or "root")


def say(text: str) -> None:
    """Write a line to the console."""
    up_s = time.clock_gettime(time.CLOCK_MONOTONIC)
    with contextlib.suppress(OSError):
        os.write(1, f"[{up_s:12.6f}] {text}\n".encode())


def _write(path: Path, content: bytes, mode: int) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
    path.chmod(mode)


def _append(path: str, line: str) -> None:
    with Path(path).open("a") as file:
        file.write(f"{line}\n")


def _give(top: Path, owner: int) -> None:
    for path in (top, *top.rglob("*")):
        os.chown(path, owner, owner, follow_symlinks=False)
