"""Connections: one attempt to reach a host, and in plain words why it failed."""

from __future__ import annotations

import asyncio
import socket
from dataclasses import replace
from typing import Any

import asyncssh

from paceline.errors import HostRefuses, TransportError
from paceline.model.host import Host, SshAccess
from paceline.transports.ssh.keys import HostKeys, Judge

CONNECT_TIMEOUT_S = 10.0
# A host that has vanished is noticed after six seconds of silence.
_KEEPALIVE_S = 2
_KEEPALIVE_COUNT = 3


async def connect(host: Host, keys: HostKeys) -> asyncssh.SSHClientConnection:
    """Open a connection to a host, or say why that cannot be done."""
    access = host.ssh or SshAccess()
    jump = await _jump(host, access, keys) if access.jump else None
    try:
        return await _connect(host, access, keys, jump)
    except BaseException:
        if jump is not None:
            jump.close()
        raise


async def _connect(
    host: Host, access: SshAccess, keys: HostKeys, jump: asyncssh.SSHClientConnection | None
) -> asyncssh.SSHClientConnection:
    judge = Judge(keys, access.host_key)
    try:
        return await _attempt(host, access, judge, jump)
    except TransportError:
        if judge.shown is None or judge.refusal is not None:
            raise
    # Nothing is known of the host: either somebody accepts the key that it has shown, or we stop.
    await keys.accept(host.address, access.port or asyncssh.DEFAULT_PORT, judge.shown)
    return await _attempt(host, access, Judge(keys, access.host_key), jump)


async def _jump(host: Host, access: SshAccess, keys: HostKeys) -> asyncssh.SSHClientConnection:
    """Connect to the last of the hosts that lead to this one, through those before it."""
    before, _, last = (access.jump or "").rpartition(",")
    user, _, place = last.strip().rpartition("@")
    name, _, port = place.partition(":")
    through = replace(
        access, user=user or None, port=int(port) if port else None, jump=before or None,
        host_key=None,
    )  # fmt: skip
    try:
        return await connect(Host(name, name, name, through), keys)
    except TransportError as error:
        raise TransportError(
            f"the jump host {error.host or name} failed: {error.message}",
            host=host.name,
            hint=error.hint,
        ) from error


async def _attempt(
    host: Host, access: SshAccess, judge: Judge, jump: asyncssh.SSHClientConnection | None
) -> asyncssh.SSHClientConnection:
    client = _Client(judge)
    options: dict[str, Any] = {"username": access.user, "port": access.port}
    if access.key is not None:
        options["client_keys"] = [access.key]
    if jump is not None:
        options["tunnel"] = jump
    try:
        connection, _ = await asyncio.wait_for(
            asyncssh.create_connection(
                lambda: client,
                host.address,
                known_hosts=judge.known,
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
        raise _explained(error, host, access, judge) from error
    client.jump = jump
    return connection


class _Client(asyncssh.SSHClient):
    """Judges the host's key, and lets go of the jump host when the connection ends."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self.jump: asyncssh.SSHClientConnection | None = None

    def validate_host_public_key(
        self, host: str, addr: str, port: int, key: asyncssh.SSHKey
    ) -> bool:
        del host, addr, port
        return self._judge.judge(key)

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        if self.jump is not None:
            self.jump.close()


def _explained(error: Exception, host: Host, access: SshAccess, judge: Judge) -> TransportError:
    """Say in plain words why a host could not be reached."""
    words, hint = _why(error, access, judge)
    at = "" if host.address == host.name else f" ({host.address})"
    kind = HostRefuses if isinstance(error, ConnectionRefusedError) else TransportError
    return kind(f"cannot be reached over SSH{at}: {words}", host=host.name, hint=hint)


def _why(error: Exception, access: SshAccess, judge: Judge) -> tuple[str, str | None]:
    if judge.refusal is not None:
        return judge.refusal, _CHANGED_HINT
    for kinds, words, hint in _REASONS:
        if isinstance(error, kinds):
            port = access.port or asyncssh.DEFAULT_PORT
            reason = getattr(error, "reason", None) or str(error) or type(error).__name__
            return words.format(port=port, reason=reason, key=access.key or ""), hint
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
