"""Host keys: the one from the user data is replaced by one that was made on the host itself.

In three steps, so that a loss of either side at any moment locks nobody out: the host makes a new
key beside the old one; we write it down as coming; the host takes it into use.
"""

from __future__ import annotations

from paceline.model.command import Command

HOST_KEY = "/etc/ssh/ssh_host_ed25519_key"

_MAKE = """\
set -eu
new="$1.paceline"
[ -s "$new.pub" ] || { rm -f "$new"; ssh-keygen -q -t ed25519 -N '' -C '' -f "$new"; }
cat "$new.pub"
"""

# sshd reads its keys when it is told to. The one that is meant is found among our own ancestors,
# so that no other on the machine is: the outermost of them is the one that listens.
_TAKE = """\
set -eu
key="$1"
new="$1.paceline"
if [ -s "$new" ]; then
    chmod 600 "$new"
    mv -f "$new" "$key"
    mv -f "$new.pub" "$key.pub"
fi
pid=$$
listener=
while [ "$pid" -gt 1 ]; do
    read -r name < "/proc/$pid/comm"
    case "$name" in sshd*) listener=$pid ;; esac
    pid=$(awk '/^PPid:/ {print $2}' "/proc/$pid/status")
done
if [ -n "$listener" ]; then
    kill -HUP "$listener"
else
    systemctl reload ssh.service 2>/dev/null || systemctl reload sshd.service
fi
"""
_AS_ROOT = 'if [ "$(id -u)" = 0 ]; then exec sh -s -- "$1"; fi; exec sudo -n sh -s -- "$1"'


def make_new_key(path: str = HOST_KEY) -> Command:
    """Return the command that makes a host's next key, once, and says its public half."""
    return _as_root(_MAKE, path)


def take_new_key(path: str = HOST_KEY) -> Command:
    """Return the command that takes the next key into use; done twice, it is done once."""
    return _as_root(_TAKE, path)


def _as_root(script: str, path: str) -> Command:
    return Command(("sh", "-c", _AS_ROOT, "paceline", path), stdin=script.encode())


def public_half(text: str) -> str | None:
    """Return the public key that a host has told, without its comment; None if it told none."""
    for line in text.splitlines():
        words = line.split()
        if len(words) > 1 and words[0] == "ssh-ed25519":
            return " ".join(words[:2])
    return None
