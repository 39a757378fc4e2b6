"""The line that opens the system's own ssh client to a host of ours.

Nothing is read from known hosts but what we say, nothing is forwarded, and nothing is written
below `~/.ssh`.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace

from paceline.model.host import Host, SshAccess
from paceline.model.spec.hostwords import host_words

PIN_NAME = "paceline-host"
_SAFE = (
    "ForwardAgent=no",
    "ForwardX11=no",
    "PasswordAuthentication=no",
    "KbdInteractiveAuthentication=no",
    # The client would take new keys down, or old ones away, in files that are the user's.
    "UpdateHostKeys=no",
    "CheckHostIP=no",
    "ControlMaster=no",
    "ControlPath=none",
    "ConnectTimeout=15",
)


@dataclass(frozen=True)
class Trust:
    """Whose word the client takes for a host's key.

    `pinned` is a file with the one key of the host, under `PIN_NAME`; `own` is our file of known
    hosts, and `others` are only read. These two are for hosts on the way, and so are `keys`: the
    user's own, which may open them where the key of the host behind them does not.
    """

    pinned: str
    own: str
    others: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()


def ssh_argv(
    host: Host,
    trust: Trust,
    command: Sequence[str] = (),
    *,
    config: str | None = None,
    terminal: bool = True,
) -> tuple[str, ...]:
    """Return the words that open a shell on a host, or run a command there.

    `config` replaces the user's ssh config; `none` is the word for no config. A command gets a
    `terminal` where we have one ourselves.
    """
    access = host.ssh or SshAccess()
    options = [
        "StrictHostKeyChecking=yes",
        f"UserKnownHostsFile={_file(trust.pinned)}",
        "GlobalKnownHostsFile=/dev/null",
        f"HostKeyAlias={PIN_NAME}",
    ]
    if access.jump:
        options.append(f"ProxyCommand={_through(access, trust, config)}")
    words = [*_opening(access, config), *_settings(options)]
    if command:
        words.append("-t" if terminal else "-T")
    words += ["--", host.address]
    # The far shell joins and splits again whatever it is given.
    return (*words, shlex.join(command)) if command else tuple(words)


def _through(access: SshAccess, trust: Trust, config: str | None) -> str:
    """Return the command that leads through the jump hosts; our rules hold for these too."""
    before, _, last = (access.jump or "").rpartition(",")
    place = host_words(last)
    files = " ".join(_file(path) for path in (trust.own, *trust.others))
    options = ["StrictHostKeyChecking=yes", f"UserKnownHostsFile={files}"]
    inner = SshAccess(place.get("user"), place.get("port"), access.key, before or None)
    if before:
        options.append(f"ProxyCommand={_through(inner, trust, config)}")
    keys = () if access.key is None else (*trust.keys, access.key)
    words = [*_opening(replace(inner, key=None), config), *_identities(keys), *_settings(options)]
    line = shlex.join(words).replace("%", "%%")
    return f"{line} -W '[%h]:%p' -- {shlex.quote(place['address']).replace('%', '%%')}"


def _identities(keys: Sequence[str]) -> list[str]:
    return [word for key in keys for word in ("-i", key)]


def _opening(access: SshAccess, config: str | None) -> list[str]:
    words = ["ssh"]
    if config is not None:
        words += ["-F", config]
    if access.port is not None:
        words += ["-p", str(access.port)]
    if access.user is not None:
        words += ["-l", access.user]
    if access.key is not None:
        words += ["-i", access.key, "-o", "IdentitiesOnly=yes"]
    return words


def _settings(options: Sequence[str]) -> list[str]:
    return [word for option in (*options, *_SAFE) for word in ("-o", option)]


def _file(path: str) -> str:
    """Return a path as an option's value takes it: its spaces and percent signs kept."""
    escaped = path.replace("%", "%%").replace('"', '\\"')
    return f'"{escaped}"' if " " in path else escaped
