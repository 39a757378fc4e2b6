"""The transport `ssh`: the port `Transport` for hosts that answer to SSH."""

from __future__ import annotations

from paceline.transports.ssh.jumps import Jumps
from paceline.transports.ssh.keys import HostKeys
from paceline.transports.ssh.making import make_key
from paceline.transports.ssh.transport import SshTransport
from paceline.transports.ssh.way import as_peers_see, default_keys, with_way

__all__ = [
    "HostKeys",
    "Jumps",
    "SshTransport",
    "as_peers_see",
    "default_keys",
    "make_key",
    "with_way",
]
