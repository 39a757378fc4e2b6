"""Every pair of hosts, both ways, before a job starts: a fault is named within seconds.

Left to itself, torch would wait ten minutes for a host that cannot be reached, and then not say
which. Each host listens at a port of the system's choice, the master at the rendezvous port as
well; then each dials all others from the interface that the job will use.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from paceline.app.links import Route, ask_route, peers_command
from paceline.errors import EnvironmentFault, PacelineError
from paceline.model.host import Host, HostFacts
from paceline.ports import Transport

_DIAL_S = 3.0
_LISTEN_S = 20.0
_ANSWER_WITHIN_S = 10.0
# Beyond this many hosts, each looks at the master and its next neighbours only.
_MOST_PEERS = 64


@dataclass(frozen=True)
class End:
    """One host of the pairs: the way to it, and how our package is run there."""

    host: Host
    link: Transport
    facts: HostFacts
    python: str
    import_path: str | None


@dataclass(frozen=True)
class Fault:
    """What keeps hosts from working together, and what to do about it."""

    host: str
    text: str
    hint: str


async def require_pairs(
    ends: Sequence[End], port: int, interface: str | None, *, same_torch: bool
) -> None:
    """Raise one error that names every fault between the hosts."""
    different = version_faults({end.host.name: end.facts for end in ends}) if same_torch else ()
    raise_faults((*different, *await check_pairs(ends, port, interface)))


def raise_faults(faults: Sequence[Fault]) -> None:
    """Raise one error that names all faults, if there are any."""
    if faults:
        lines = "\n".join(f"  {fault.host}: {fault.text}" for fault in faults)
        hints = "; ".join(dict.fromkeys(fault.hint for fault in faults))
        raise EnvironmentFault(f"the hosts cannot work together:\n{lines}", hint=hints)


async def check_pairs(ends: Sequence[End], port: int, interface: str | None) -> tuple[Fault, ...]:
    """Return every fault of the links; `interface` is the one that the user insists on."""
    master = ends[0].host.peer_address
    asked = (ask_route(end.link, end.python, end.import_path, master) for end in ends)
    found = await asyncio.gather(*asked)
    routes = {end.host.name: route for end, route in zip(ends, found, strict=True)}
    sources = {name: _source(route, interface) for name, route in routes.items()}
    faults = _route_faults(ends, routes, sources, interface)
    able = [end for end in ends if sources[end.host.name] is not None]
    async with contextlib.AsyncExitStack() as stack:
        ports, deaf = await _listen_everywhere(stack, ends, port)
        dials = (_dial(end, ends, ports, str(sources[end.host.name])) for end in able)
        dialled = await asyncio.gather(*dials)
    for end, answers in zip(able, dialled, strict=True):
        faults += _dial_faults(end, ends, answers, routes, interface)
    return (*faults, *deaf)


async def _listen_everywhere(
    stack: contextlib.AsyncExitStack, ends: Sequence[End], port: int
) -> tuple[Mapping[str, tuple[int, ...]], list[Fault]]:
    """Let all hosts listen until the stack is left; return their ports, and who cannot."""
    entering = (
        stack.enter_async_context(_listening(end, port if end is ends[0] else 0)) for end in ends
    )
    results = await asyncio.gather(*entering, return_exceptions=True)
    ports: dict[str, tuple[int, ...]] = {}
    faults = []
    for end, result in zip(ends, results, strict=True):
        if isinstance(result, PacelineError):
            faults.append(Fault(end.host.name, result.message, result.hint or _PORT_HINT))
        elif isinstance(result, BaseException):
            raise result
        else:
            ports[end.host.name] = result
    return ports, faults


def version_faults(facts: Mapping[str, HostFacts]) -> tuple[Fault, ...]:
    """Return a fault for each host whose torch is not that of the first. Pure."""
    (first, reference), *others = facts.items()
    return tuple(
        Fault(
            name,
            f"torch {found.torch_version or 'is missing'} here, "
            f"and {reference.torch_version or 'missing'} on {first}",
            "install the same version of torch on all hosts",
        )
        for name, found in others
        if _release(found.torch_version) != _release(reference.torch_version)
    )


def _release(version: str | None) -> str | None:
    """Return a version without its build: a CPU build and a CUDA build understand each other."""
    return None if version is None else version.partition("+")[0]


def _source(route: Route, interface: str | None) -> str | None:
    """Return the address that a host speaks from."""
    if interface is None:
        return route.source
    return next((address for name, address in route.interfaces if name == interface), None)


def _route_faults(
    ends: Sequence[End],
    routes: Mapping[str, Route],
    sources: Mapping[str, str | None],
    interface: str | None,
) -> list[Fault]:
    faults = []
    for end in ends:
        name = end.host.name
        if sources[name] is not None:
            continue
        there = ", ".join(dict.fromkeys(item for item, _ in routes[name].interfaces)) or "none"
        text = (
            f"there is no way to {ends[0].host.peer_address}: {routes[name].error}"
            if interface is None
            else f"there is no interface {interface}; there is: {there}"
        )
        faults.append(Fault(name, text, _INTERFACE_HINT))
    return faults


@contextlib.asynccontextmanager
async def _listening(end: End, port: int) -> AsyncIterator[tuple[int, ...]]:
    """Let a host listen at a port, and at one of the system's choice, and return both."""
    address = "::" if ":" in end.host.peer_address else "0.0.0.0"  # noqa: S104 - as gloo does
    words = ("listen", address, str(port), str(_LISTEN_S))
    command = peers_command(end.python, end.import_path, *words)
    async with contextlib.aclosing(end.link.stream(command)) as lines:
        try:
            first = await asyncio.wait_for(lines.__anext__(), _ANSWER_WITHIN_S)
            answer: dict[str, Any] = json.loads(first)
        except (asyncio.TimeoutError, StopAsyncIteration, ValueError) as error:
            raise EnvironmentFault("the host could not listen", host=end.host.name) from error
        if answer["error"]:
            raise EnvironmentFault(
                f"it cannot listen at port {port}: {answer['error']}", host=end.host.name
            )
        yield tuple(answer["ports"])


async def _dial(
    end: End, ends: Sequence[End], ports: Mapping[str, tuple[int, ...]], source: str
) -> dict[str, str | None]:
    """Let a host dial its peers; return what came of each `NAME PORT`."""
    place = list(ends).index(end)
    peers = [ends[(place + step) % len(ends)] for step in range(1, min(len(ends), _MOST_PEERS))]
    if place and ends[0] not in peers:
        peers.append(ends[0])
    targets = [
        f"{peer.host.name} {port}={peer.host.peer_address}:{port}"
        for peer in peers
        for port in ports.get(peer.host.name, ())
    ]
    words = ("dial", source, str(_DIAL_S), *targets)
    done = await end.link.run(
        peers_command(end.python, end.import_path, *words), timeout_s=_ANSWER_WITHIN_S
    )
    try:
        answers: dict[str, str | None] = json.loads(done.stdout)
    except ValueError as error:
        last = done.stderr.strip().splitlines()[-1:] or ["it said nothing"]
        raise EnvironmentFault(
            f"the host could not dial its peers: {last[0]}", host=end.host.name
        ) from error
    return answers


def _dial_faults(
    end: End,
    ends: Sequence[End],
    answers: Mapping[str, str | None],
    routes: Mapping[str, Route],
    interface: str | None,
) -> list[Fault]:
    peers = {peer.host.name: peer.host for peer in ends}
    over = interface or routes[end.host.name].interface or "an unknown interface"
    faults: dict[str, Fault] = {}
    for target, trouble in answers.items():
        name, _, port = target.rpartition(" ")
        if trouble is None or name in faults:
            continue
        peer = peers[name]
        own = [address for _, address in routes[name].interfaces]
        where = f"{name} at {peer.peer_address}:{port} over {over}"
        hint = _FIREWALL_HINT if trouble in ("no answer", "refused") else _INTERFACE_HINT
        if trouble == "refused" and peer.peer_address not in own:
            hint = f"{peer.peer_address} is no address of {name}, which has {', '.join(own)}"
        faults[name] = Fault(end.host.name, f"cannot reach {where}: {trouble}", hint)
    return list(faults.values())


_PORT_HINT = "leave job.master_port out, and a free port is found for each run"
_FIREWALL_HINT = (
    "let the hosts reach each other at every port (a security group that allows itself, "
    "`ufw allow from SUBNET`)"
)
_INTERFACE_HINT = (
    "give each host's `private_address`, and leave GLOO_SOCKET_IFNAME and NCCL_SOCKET_IFNAME out "
    "of the environment"
)
