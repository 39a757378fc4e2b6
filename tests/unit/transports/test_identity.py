"""Private keys that are read once, and the files that are left to asyncssh."""

from __future__ import annotations

from pathlib import Path

import asyncssh

from paceline.transports.ssh.identity import identity


def _key_file(path: Path, passphrase: str | None = None) -> asyncssh.SSHKey:
    key = asyncssh.generate_private_key("ssh-ed25519")
    key.write_private_key(path, passphrase=passphrase, rounds=50)
    return key


def test_a_plain_key_is_read_once_and_again_when_its_file_has_changed(tmp_path: Path) -> None:
    """The same object comes back until another key stands in the file."""
    path = tmp_path / "key"
    first = _key_file(path)
    found = identity(str(path))
    assert isinstance(found, asyncssh.SSHKey)
    assert found.public_data == first.public_data
    assert identity(str(path)) is found
    path.unlink()
    second = _key_file(path)
    other = identity(str(path))
    assert isinstance(other, asyncssh.SSHKey)
    assert other.public_data == second.public_data


def test_what_is_not_one_plain_key_is_left_to_asyncssh(tmp_path: Path) -> None:
    """A certificate beside it, two keys, a passphrase, nonsense, nothing: the path comes back."""
    names = ("certified", "two", "locked", "nonsense", "missing")
    paths = {name: tmp_path / name for name in names}
    _key_file(paths["certified"])
    (tmp_path / "certified-cert.pub").write_text("a certificate")
    _key_file(paths["two"])
    paths["two"].write_bytes(paths["two"].read_bytes() * 2)
    _key_file(paths["locked"], "a passphrase")
    paths["nonsense"].write_text("no key")
    for path in paths.values():
        assert identity(str(path)) == str(path)
