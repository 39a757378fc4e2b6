"""A host that is reached over SSH. Importing this imports asyncssh; nothing else of ours does."""

from paceline.transports.ssh.keys import HostKeys
from paceline.transports.ssh.transport import SshTransport

__all__ = ["HostKeys", "SshTransport"]
