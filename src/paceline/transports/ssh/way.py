"""The way to a host: what the spec says of it, and for the rest the user's ssh config."""

from __future__ import annotations

import getpass
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import asyncssh

from paceline.errors import TransportError
from paceline.model.host import Host, SshAccess
from paceline.model.spec.hostwords import host_words

CONFIG_FILE = Path("~/.ssh/config")
# The names under which the ssh client itself looks for keys.
_DEFAULT_KEYS = ("id_ed25519", "id_ecdsa", "id_rsa", "id_ed25519_sk", "id_ecdsa_sk")


@dataclass(frozen=True)
class Way:
    """Where a host really is, who we are there, the hosts on the way, and the keys to try.

    `keys` is None where the ssh client's own default keys are meant.
    """

    address: str
    port: int
    user: str
    jump: str | None = None
    keys: tuple[str, ...] | None = None


def way_to(host: Host, *, passing: bool = False) -> Way:
    """Return the way to a host; one that is only passed is tried with the user's own keys too."""
    access = host.ssh or SshAccess()
    config = _settings(host, access)
    if config is None:
        port = access.port or asyncssh.DEFAULT_PORT
        user = access.user or getpass.getuser()
        return Way(host.address, port, user, access.jump, _keys(access, None, passing=passing))
    named = config.config.get("IdentityFile")
    tunnel = config.tunnel if isinstance(config.tunnel, str) else None
    return Way(
        address=config.host,
        port=config.port,
        user=config.username,
        jump=access.jump or tunnel,
        keys=_keys(access, named if isinstance(named, list) else None, passing=passing),
    )


def _settings(host: Host, access: SshAccess) -> asyncssh.SSHClientConnectionOptions | None:
    """Return what the user's ssh config says of a host; None where there is no config."""
    path = CONFIG_FILE.expanduser()
    if not path.is_file():
        return None
    try:
        return asyncssh.SSHClientConnectionOptions(
            config=[path],
            host=host.address,
            port=access.port or (),
            username=access.user or (),
            client_keys=None,
        )
    except (OSError, ValueError) as error:
        raise TransportError(
            f"your ssh config cannot be used: {error}",
            host=host.name,
            hint="correct that line, or put it into a `Host` section of its own",
        ) from error


def _keys(access: SshAccess, named: list[str] | None, *, passing: bool) -> tuple[str, ...] | None:
    """Return the private keys to try, of those that exist; like ssh, we do not miss the others."""
    if access.key is not None and not passing:
        return (access.key,)
    if named is None and access.key is None:
        return None
    own = default_keys() if named is None else _existing(named)
    return (*own, access.key) if access.key is not None else tuple(own)


def default_keys() -> tuple[str, ...]:
    """Return those of the user's private keys that ssh tries without being told."""
    return _existing([str(CONFIG_FILE.with_name(name)) for name in _DEFAULT_KEYS])


def _existing(names: list[str]) -> tuple[str, ...]:
    paths = (Path(name).expanduser() for name in names)
    return tuple(str(path) for path in paths if path.is_file())


def meets_itself(host: Host, jump: str, others: Iterable[Host], *, named: bool) -> bool:
    """Whether a jump host on the way to a host is one of the others: user, address and port.

    `Host *` of an ssh config sends the jump host through itself, and then we go direct. A way that
    the spec has `named` is never shortened: one that leads in a circle is an error.
    """
    words = host_words(jump)
    if not any(_is_at(words, other) for other in others):
        return False
    if named:
        raise TransportError(
            f"the way to it leads in a circle, through {jump} again",
            host=host.name,
            hint="`jump` names other hosts, or another port or user of the same",
        )
    return True


def _is_at(words: Mapping[str, Any], other: Host) -> bool:
    if words["address"] != other.address:
        return False
    # Only now: a look into the user's ssh config may run programs.
    access = SshAccess(words.get("user"), words.get("port"))
    there, here = way_to(Host(other.address, other.address, "", access)), way_to(other)
    return there.port == here.port and words.get("user") in (None, here.user)


def with_way(host: Host) -> Host:
    """Return a host with all that lead to it, those of the user's ssh config included."""
    access = host.ssh or SshAccess()
    named = access.jump is not None
    jumps: list[str] = []
    met = [host]
    ahead = way_to(host).jump
    while ahead:
        first = ahead.split(",")[0]
        if meets_itself(host, first, met, named=named):
            break
        words = host_words(first)
        through = SshAccess(words.get("user"), words.get("port"))
        met.append(Host(words["address"], words["address"], "", through))
        jumps = [*ahead.split(","), *jumps]
        # What leads to the first that the spec names, the ssh config alone says.
        ahead, named = way_to(met[-1]).jump, False
    return replace(host, ssh=replace(access, jump=",".join(jumps) or None))


def as_peers_see(host: Host) -> Host:
    """Return a host with the address behind a name that only the user's ssh config knows.

    The hosts do not have that config, and could not find each other by such a name.
    """
    if host.peer_address != host.address:
        return host
    return replace(host, peer_address=way_to(host).address)
