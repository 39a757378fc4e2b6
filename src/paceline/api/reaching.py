"""The hosts of a cluster, reached by hand: a shell, a command on all of them, files."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from paceline.api.completing import complete
from paceline.api.wiring import (
    LEDGER_FILE,
    SpecLike,
    load,
    own_host_keys,
    state_home,
    wire,
)
from paceline.app.carrying import Carried, carry
from paceline.app.fanout import HostResult, OnHostLine, run_everywhere
from paceline.app.openfiles import room_for_hosts
from paceline.errors import TransportError, UsageError
from paceline.model.command import Command
from paceline.model.host import Host
from paceline.planning.carrying import plan_carrying
from paceline.planning.picking import pick, pick_some
from paceline.planning.ssh_line import PIN_NAME, Trust, ssh_argv
from paceline.ports import Provider, Transport
from paceline.store.files import storage_errors


@dataclass(frozen=True)
class Shell:
    """How a shell on a host is opened: the words for the system's ssh client, if there is one."""

    host: Host
    argv: tuple[str, ...]
    open_here: Callable[[], int]


def execute(
    command: Sequence[str],
    spec: SpecLike = None,
    *,
    overrides: Sequence[str] = (),
    cluster: str | None = None,
    on: Sequence[str] = (),
    on_line: OnHostLine | None = None,
    timeout_s: float | None = None,
    on_start: Callable[[tuple[str, ...]], None] | None = None,
) -> tuple[HostResult, ...]:
    """Run a command on the hosts of a spec, all of them or those in `on`, and return how it went.

    The words reach the program as they are; there is no shell on the way. `on_start` is told
    which hosts it will be.
    """
    if not command:
        raise UsageError("there is no command", hint="paceline exec -- uptime")
    provider = _provider(spec, overrides, cluster)

    async def work() -> tuple[HostResult, ...]:
        hosts = pick_some((await provider.cluster()).hosts, on)
        if on_start is not None:
            on_start(tuple(host.name for host in hosts))
        async with AsyncExitStack() as stack:
            stack.enter_context(room_for_hosts(len(hosts)))
            links = {host.name: await _link(stack, provider, host) for host in hosts}
            value = Command(tuple(command))
            return await run_everywhere(links, value, on_line=on_line, timeout_s=timeout_s)

    return complete(work())


def copy(
    source: str,
    target: str,
    spec: SpecLike = None,
    *,
    overrides: Sequence[str] = (),
    cluster: str | None = None,
) -> tuple[Carried, ...]:
    """Copy a file or a folder between here and hosts: one of the two is `HOST:PATH` or `all:PATH`.

    As with `cp -r`, a target that is a folder receives the source below its own name.
    """
    provider = _provider(spec, overrides, cluster)

    async def work() -> tuple[Carried, ...]:
        plan = plan_carrying((await provider.cluster()).hosts, source, target)
        async with AsyncExitStack() as stack:
            stack.enter_context(room_for_hosts(len(plan.hosts)))
            links = {host.name: await _link(stack, provider, host) for host in plan.hosts}
            return await carry(links, plan)

    return complete(work())


def shell(
    host: str | None = None,
    command: Sequence[str] = (),
    spec: SpecLike = None,
    *,
    overrides: Sequence[str] = (),
    cluster: str | None = None,
) -> Shell:
    """Return how a shell on a host is opened; the host has been reached, and its key verified."""
    provider = _provider(spec, overrides, cluster)

    async def work() -> tuple[Host, str]:
        chosen = pick((await provider.cluster()).hosts, host)
        if chosen.ssh is None:
            raise UsageError(
                f"{chosen.name} is this machine, and no ssh leads to it",
                hint="name machines with --hosts, a spec, or a cluster",
            )
        async with _linked(provider, chosen) as link:
            return chosen, await _shown_key(link)

    chosen, key = complete(work())
    rented = provider.name == "ec2"
    line = _client_line(chosen, key, command, rented=rented)
    argv = line if shutil.which("ssh") is not None else ()
    return Shell(chosen, argv, lambda: _open_here(provider, chosen, command))


def _client_line(host: Host, key: str, command: Sequence[str], *, rented: bool) -> tuple[str, ...]:
    """Return the words for the system's ssh client; `key` is the host's, and has been verified."""
    from paceline.transports.ssh import default_keys, with_way  # noqa: PLC0415 - it is heavy

    keys = own_host_keys()
    known = tuple(str(path.expanduser()) for path in keys.user_files)
    trust = Trust(str(_pin(key)), str(keys.own_file), known, default_keys())
    at_terminal = sys.stdin is not None and sys.stdin.isatty()
    if rented:
        # Rented hosts need nothing of the user's own settings, and must not be led astray by them.
        return ssh_argv(host, trust, command, config="none", terminal=at_terminal)
    # What their ssh config says of hosts on the way is said to the client by us: by itself, it
    # would ask for their keys, and write these into the user's own file.
    return ssh_argv(with_way(host), trust, command, terminal=at_terminal)


def _provider(spec: SpecLike, overrides: Sequence[str], cluster: str | None) -> Provider:
    """Return who leads to the hosts: of a cluster, of a spec, or of the only cluster that is up."""
    named = spec is not None or bool(overrides)
    if cluster is not None and named:
        raise UsageError("a cluster is named, and other hosts are as well", hint="say only one")
    if not named and (cluster is not None or _clusters_are_up()):
        from paceline.api.renting import provider_named  # noqa: PLC0415 - it is heavy

        return provider_named(cluster)
    return wire(load(spec, overrides)).provider


def _clusters_are_up() -> bool:
    """Whether anything is rented, as far as this machine knows; looking does not make a ledger."""
    if not (state_home() / LEDGER_FILE).is_file():
        return False
    from paceline.api.desks import open_ledger  # noqa: PLC0415

    return bool(open_ledger().clusters())


def _open_here(provider: Provider, host: Host, command: Sequence[str]) -> int:
    from paceline.transports.ssh.terminal import converse  # noqa: PLC0415 - it is heavy

    async def work() -> int:
        async with _linked(provider, host) as link:
            return await converse(link, command)

    return complete(work())


@asynccontextmanager
async def _linked(provider: Provider, host: Host) -> AsyncIterator[Transport]:
    async with AsyncExitStack() as stack:
        yield await _link(stack, provider, host)


async def _link(stack: AsyncExitStack, provider: Provider, host: Host) -> Transport:
    link = await provider.connect(host)
    stack.push_async_callback(link.close)
    return link


async def _shown_key(link: Transport) -> str:
    """Return the host's key, as it was shown to and accepted by our own transport."""
    from paceline.transports.ssh import SshTransport  # noqa: PLC0415 - it is heavy

    if not isinstance(link, SshTransport):
        raise TransportError("no ssh leads to it", host=link.host.name)
    return await link.host_key()


def _pin(key: str) -> Path:
    """Write a key into a file of known hosts of its own, and return where that is."""
    line = f"{PIN_NAME} {key}\n".encode()
    path = state_home() / "pins" / hashlib.sha256(line).hexdigest()[:16]
    with storage_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f"{path.name}.{os.getpid()}")
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(line)
        draft.replace(path)
    return path
