"""Keys that are made here: ed25519, without a passphrase, for files that nobody else can read."""

from __future__ import annotations

import asyncssh

from paceline.model.command import Secret
from paceline.ports import KeyPair


def make_key() -> KeyPair:
    """Return a new key."""
    made = asyncssh.generate_private_key("ssh-ed25519", comment="paceline")
    public = made.export_public_key().decode("ascii").strip()
    return KeyPair(Secret(made.export_private_key().decode("ascii")), public)
