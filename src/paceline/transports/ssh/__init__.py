"""The transport `ssh`: the port `Transport` for hosts that answer to SSH."""

from __future__ import annotations

from paceline.transports.ssh.keys import HostKeys
from paceline.transports.ssh.making import make_key
from paceline.transports.ssh.transport import SshTransport

__all__ = ["HostKeys", "SshTransport", "make_key"]
