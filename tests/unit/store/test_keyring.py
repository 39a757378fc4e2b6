from __future__ import annotations

import stat
from pathlib import Path

from paceline.model.command import Secret
from paceline.model.ec2 import ClusterKey
from paceline.ports import HostPin, KeyPair
from paceline.store.keyring import FileKeyring

KEY = ClusterKey("study", "ann@desk", "us-east-1")


def test_nobody_else_can_read_anything(tmp_path: Path) -> None:
    """Folders have mode 700 and files mode 600, the public halves included."""
    keyring = FileKeyring(tmp_path / "keys", lambda: KeyPair(Secret("private"), "ssh-ed25519 AA"))
    keyring.pair(KEY, "user")
    keyring.write_pin(KEY, "i-1", HostPin("a"))
    (folder,) = (tmp_path / "keys").iterdir()
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (folder, *folder.rglob("*"))}
    assert {mode for name, mode in modes.items() if name in {folder.name, "pins"}} == {0o700}
    assert {modes[name] for name in ("user", "user.pub", "i-1")} == {0o600}


def test_half_a_key_is_none(tmp_path: Path) -> None:
    """A process that dies between the halves leaves no key; the next one makes a whole one."""
    keyring = FileKeyring(tmp_path, lambda: KeyPair(Secret("new"), "ssh-ed25519 NEW"))
    path = keyring.path(KEY, "user")
    path.parent.mkdir(parents=True)
    path.with_name("user.pub").write_text("ssh-ed25519 OLD\n")
    assert keyring.pair(KEY, "user") == KeyPair(Secret("new"), "ssh-ed25519 NEW")
