"""Connections: one attempt to reach a host, and in plain words why it failed."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from typing import Any

import asyncssh

from paceline.errors import HostRefuses, TransportError
from paceline.model.host import Host, SshAccess
from paceline.model.spec.hostwords import host_words
from paceline.transports.ssh.identity import identity
from paceline.transports.ssh.jumps import Jumps, Lease
from paceline.transports.ssh.keys import HostKeys, Judge
from paceline.transports.ssh.way import Way, meets_itself, way_to

# A host that is missing is to be named within ten seconds, our own start included.
CONNECT_TIMEOUT_S = 7.0
# A silent host is asked after two seconds, and again after four; when the next question would be
# due, the connection is given up.
_KEEPALIVE_S = 2
_KEEPALIVE_COUNT = 2
NOTICED_AFTER_S = _KEEPALIVE_S * (_KEEPALIVE_COUNT + 1)


async def connect(
    host: Host, keys: HostKeys, jumps: Jumps | None = None
) -> asyncssh.SSHClientConnection:
    """Open a connection to a host, or say why that cannot be done.

    `jumps` keeps what leads to several hosts.
    """
    named = host.ssh is not None and host.ssh.jump is not None
    return await _connect(host, keys, jumps or Jumps(), (), named=named)


async def _connect(
    host: Host, keys: HostKeys, jumps: Jumps, leads_to: tuple[Host, ...], *, named: bool
) -> asyncssh.SSHClientConnection:
    """Connect to a host, through those before it; `leads_to` are those that come after it.

    The way is `named` where the spec says it, and not the user's ssh config.
    """
    # In a thread: the user's ssh config may run programs (`Match exec`).
    way = await asyncio.to_thread(way_to, host, passing=bool(leads_to))
    jump = await _jump(host, way, keys, jumps, leads_to, named=named)
    try:
        return await _verified(host, way, keys, jump)
    except BaseException:
        if jump is not None:
            jump.release()
        raise


async def _verified(
    host: Host, way: Way, keys: HostKeys, jump: Lease | None
) -> asyncssh.SSHClientConnection:
    pin = host.ssh.host_key if host.ssh is not None else None
    judge = Judge(keys, pin)
    try:
        return await _attempt(host, way, judge, jump)
    except TransportError:
        if judge.shown is None or judge.refusal is not None:
            raise
    # Nothing is known of the host: either somebody accepts the key that it has shown, or we stop.
    await keys.accept(host.name, judge.place or host.address, judge.shown)
    return await _attempt(host, way, Judge(keys, pin), jump)


async def _jump(
    host: Host,
    way: Way,
    keys: HostKeys,
    jumps: Jumps,
    leads_to: tuple[Host, ...],
    *,
    named: bool,
) -> Lease | None:
    """Connect to the last of the hosts that lead to this one, through those before it."""
    if way.jump is None:
        return None
    before, _, last = way.jump.rpartition(",")
    after = (host, *leads_to)
    if await asyncio.to_thread(meets_itself, host, last, after, named=named):
        return None
    words = host_words(last)
    name = words["address"]
    access = host.ssh or SshAccess()
    through = SshAccess(words.get("user"), words.get("port"), access.key, before or None)
    passed = Host(name, name, name, through)
    try:
        return await jumps.lease(
            repr(passed),
            lambda: _connect(passed, keys, jumps, after, named=named and bool(before)),
        )
    except TransportError as error:
        raise TransportError(
            f"the jump host {error.host or name} failed: {error.message}",
            host=host.name,
            hint=error.hint,
        ) from error


async def _attempt(
    host: Host, way: Way, judge: Judge, jump: Lease | None
) -> asyncssh.SSHClientConnection:
    client = _Client(judge)
    access = host.ssh or SshAccess()
    options: dict[str, Any] = {"username": access.user, "port": access.port}
    if way.keys is not None:
        options["client_keys"] = [identity(key) for key in way.keys]
        # A key that the spec names is missed when it cannot be read; one of several is not.
        options["ignore_encrypted"] = way.keys != (access.key,)
    try:
        connection, _ = await asyncio.wait_for(
            asyncssh.create_connection(
                lambda: client,
                host.address,
                known_hosts=judge.known,
                # The hosts on the way are verified by us, not by the library.
                tunnel=None if jump is None else jump.connection,
                agent_forwarding=False,
                x11_forwarding=False,
                password=None,
                keepalive_interval=_KEEPALIVE_S,
                keepalive_count_max=_KEEPALIVE_COUNT,
                compression_algs=None,
                # One call of the library for each packet, where chacha20 takes six: a fan-out to
                # 500 hosts took 1.4 s of processor time instead of 1.8 s.
                encryption_algs="^aes128-gcm@openssh.com",
                **{name: value for name, value in options.items() if value is not None},
            ),
            CONNECT_TIMEOUT_S,
        )
    except (OSError, asyncssh.Error, asyncio.TimeoutError, ValueError) as error:
        raise _explained(error, host, way, judge) from error
    client.jump = jump
    return connection


class _Client(asyncssh.SSHClient):
    """Judges the host's key, and lets go of the jump host when the connection ends."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self.jump: Lease | None = None

    def validate_host_public_key(
        self, host: str, addr: str, port: int, key: asyncssh.SSHKey
    ) -> bool:
        del host, addr, port
        return self._judge.judge(key)

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        if self.jump is not None:
            self.jump.release()


def _explained(error: Exception, host: Host, way: Way, judge: Judge) -> TransportError:
    """Say in plain words why a host could not be reached."""
    words, hint = _why(error, way, judge)
    at = "" if way.address == host.name else f" ({way.address})"
    kind = HostRefuses if isinstance(error, ConnectionRefusedError) else TransportError
    return kind(f"cannot be reached over SSH{at}: {words}", host=host.name, hint=hint)


def _why(error: Exception, way: Way, judge: Judge) -> tuple[str, str | None]:
    if judge.refusal is not None:
        return judge.refusal, _CHANGED_HINT
    if isinstance(error, OSError) and error.errno in _NO_WAY:
        return f"no way leads to it: {os.strerror(error.errno).lower()}", _SILENT_HINT
    for kinds, words, hint in _REASONS:
        if isinstance(error, kinds):
            reason = getattr(error, "reason", None) or str(error) or type(error).__name__
            key = ", ".join(way.keys or ())
            return words.format(port=way.port, reason=reason, key=key), hint
    return str(error) or type(error).__name__, _SILENT_HINT


_CHANGED_HINT = (
    "if the host was made anew, remove its old line from known_hosts (`ssh-keygen -R ADDRESS`; "
    "for ours add `-f` and the path that `paceline doctor` shows); if not, somebody may be "
    "listening in"
)
_KEYS_HINT = (
    "does `ssh USER@ADDRESS true` work? Give the user and the key that the host knows: "
    "`cluster: {hosts: [{address: …, user: …, key: …}]}`, or add the key to your agent"
)
_AGENT_HINT = "a key with a passphrase is used through an agent: `ssh-add KEY`"
_SILENT_HINT = "is it on, is that its address, and does a firewall let us through?"
_SERVER_HINT = "is it an SSH server, and does it let this user in?"
_NAME_HINT = "check the spelling, or use the IP address"
_NO_WAY = (errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EADDRNOTAVAIL)
_REFUSED_HINT = "does sshd run there, at that port?"

# The first that fits is said: the more particular before the more general.
_REASONS: tuple[tuple[tuple[type[Exception], ...], str, str], ...] = (
    ((asyncssh.HostKeyNotVerifiable,), "its host key is not known ({reason})", _CHANGED_HINT),
    ((asyncssh.PermissionDenied,), "it accepts none of our keys ({reason})", _KEYS_HINT),
    ((asyncssh.KeyImportError,), "the private key {key} cannot be used: {reason}", _AGENT_HINT),
    ((asyncssh.DisconnectError,), "the connection was ended: {reason}", _SERVER_HINT),
    (
        (asyncio.TimeoutError, TimeoutError),
        f"it does not answer at port {{port}} within {CONNECT_TIMEOUT_S:g} s",
        _SILENT_HINT,
    ),
    ((socket.gaierror,), "nobody knows an address for this name", _NAME_HINT),
    ((ConnectionRefusedError,), "it refuses connections at port {port}", _REFUSED_HINT),
    ((FileNotFoundError,), "a file is missing: {reason}", "correct `key` in the spec"),
)
