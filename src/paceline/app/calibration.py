"""Measuring what hosts and their links can do, in a few seconds, with a program that travels.

It is never worth a run: what cannot be measured is left open, with the reason beside it.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from paceline.app.pairs import End
from paceline.errors import EnvironmentFault, PacelineError, StorageError
from paceline.model.calibration import (
    AllReduceTime,
    Calibration,
    HostCalibration,
    LinkCalibration,
)
from paceline.model.command import Command
from paceline.ports import Calibrations

# One sitting of a study; whoever comes back tomorrow may meet a slower neighbour.
SITTING_S = 8 * 3600.0
_LINK_S = 0.6
_SERVE_S = 120.0
_WITHIN_S = 60.0
_ANSWER_WITHIN_S = 15.0
# The gradients of a DCGAN in bf16, and a message that latency decides.
_MESSAGES_BYTES = (64 << 10, 1 << 20, 12 << 20)


async def calibration_of(
    ends: Sequence[End], port: int, kept: Calibrations, now: float, *, anew: bool = False
) -> Calibration:
    """Return what is known of these hosts since this sitting began, else measure and keep it."""
    key = key_of(ends)
    known = None if anew else kept.known(key)
    if known is not None and 0 <= now - known.measured_at < SITTING_S:
        return known
    found = await measure(ends, port, now)
    with contextlib.suppress(StorageError):  # it can be measured again
        kept.keep(key, found)
    return found


def key_of(ends: Sequence[End]) -> str:
    """Return what makes hosts the same hosts: their names and what they say of themselves."""
    parts = [
        (end.host.name, end.facts.hostname, end.facts.cores, end.facts.cpu_model,
         end.facts.memory_bytes, end.facts.torch_version)
        for end in ends
    ]  # fmt: skip
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


async def measure(ends: Sequence[End], port: int, now: float) -> Calibration:
    """Measure all hosts at once, then their links, then an all-reduce over all of them."""
    hosts = await asyncio.gather(*(_host(end) for end in ends))
    links: tuple[LinkCalibration, ...] = ()
    times: tuple[AllReduceTime, ...] = ()
    trouble = None
    if len(ends) > 1:
        links = await _links(ends)
        try:
            times = await _all_reduce(ends, port)
        except PacelineError as error:
            trouble = f"all-reduce: {error}"
    named = {end.host.name: found for end, found in zip(ends, hosts, strict=True)}
    return Calibration(now, named, links, times, trouble)


async def _host(end: End) -> HostCalibration:
    threads = end.facts.cores
    figures: dict[str, float] = {}
    trouble = None
    try:
        figures.update(await _said(end, _gauge(end, "paceline.gauge", "memory", str(threads))))
        if end.facts.torch_version is not None:
            module = "paceline.trainer.gauge"
            figures.update(await _said(end, _gauge(end, module, "gemm", str(threads))))
    except PacelineError as error:
        trouble = str(error)
    return HostCalibration(threads=threads, trouble=trouble, **figures)


def _gauge(end: End, module: str, *words: str, **env: str) -> Command:
    path = {"PYTHONPATH": end.import_path} if end.import_path else {}
    return Command((end.python, "-m", module, *words), env={**env, **path})


async def _said(end: End, command: Command) -> Any:
    done = await end.link.run(command, timeout_s=_WITHIN_S)
    try:
        return json.loads(done.stdout)
    except ValueError as error:
        last = done.stderr.strip().splitlines()[-1:] or ["it said nothing"]
        raise EnvironmentFault(
            f"it could not be measured: {last[0]}", host=end.host.name
        ) from error


def waves_of(count: int) -> tuple[tuple[tuple[int, int], ...], ...]:
    """Return the links of a ring in waves, in none of which a host takes part twice. Pure."""
    ring = [(place, (place + 1) % count) for place in range(count)] if count > 1 else []
    waves: list[list[tuple[int, int]]] = []
    for link in ring:
        free = (wave for wave in waves if not {place for one in wave for place in one} & {*link})
        wave = next(free, None)
        if wave is None:
            waves.append(wave := [])
        wave.append(link)
    return tuple(tuple(wave) for wave in waves)


async def _links(ends: Sequence[End]) -> tuple[LinkCalibration, ...]:
    found: list[LinkCalibration] = []
    async with contextlib.AsyncExitStack() as stack:
        entering = (stack.enter_async_context(_serving(end)) for end in ends)
        ports = await asyncio.gather(*entering, return_exceptions=True)
        for wave in waves_of(len(ends)):
            works = (_link(ends[one], ends[other], ports[other]) for one, other in wave)
            found += await asyncio.gather(*works)
    return tuple(found)


@contextlib.asynccontextmanager
async def _serving(end: End) -> AsyncIterator[int]:
    """Let a host answer its peers until this is left; yield the port."""
    address = "::" if ":" in end.host.peer_address else "0.0.0.0"  # noqa: S104 - as gloo does
    command = _gauge(end, "paceline.gauge", "serve", address, str(_SERVE_S))
    async with contextlib.aclosing(end.link.stream(command)) as lines:
        try:
            answer = json.loads(await asyncio.wait_for(lines.__anext__(), _ANSWER_WITHIN_S))
            port = int(answer["port"])
        except (asyncio.TimeoutError, StopAsyncIteration, ValueError, TypeError) as error:
            raise EnvironmentFault("the host could not listen", host=end.host.name) from error
        yield port


async def _link(one: End, other: End, port: int | BaseException) -> LinkCalibration:
    names = one.host.name, other.host.name
    if isinstance(port, PacelineError):
        return LinkCalibration(*names, trouble=str(port))
    if isinstance(port, BaseException):
        raise port
    place = f"{other.host.peer_address}:{port}"
    try:
        command = _gauge(one, "paceline.gauge", "dial", "", place, str(_LINK_S))
        figures: Mapping[str, Any] = await _said(one, command)
    except PacelineError as error:
        return LinkCalibration(*names, trouble=str(error))
    return LinkCalibration(
        *names, figures["gbit_per_s"], figures["round_trip_ms"], figures.get("trouble")
    )


async def _all_reduce(ends: Sequence[End], port: int) -> tuple[AllReduceTime, ...]:
    """Let one rank on each host add up messages; rank 0 says how long it took."""
    if any(end.facts.torch_version is None for end in ends):
        raise EnvironmentFault("not every host has torch")

    def command(rank: int, end: End) -> Command:
        interface = end.facts.interface
        env = {
            "RANK": str(rank),
            "WORLD_SIZE": str(len(ends)),
            "MASTER_ADDR": ends[0].host.peer_address,
            "MASTER_PORT": str(port),
            "OMP_NUM_THREADS": "1",
            **({"GLOO_SOCKET_IFNAME": interface} if interface else {}),
        }
        words = ("all_reduce", *(str(size) for size in _MESSAGES_BYTES))
        return _gauge(end, "paceline.trainer.gauge", *words, **env)

    works = (_said(end, command(rank, end)) for rank, end in enumerate(ends))
    results = await asyncio.gather(*works, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    told: Any = results[0]
    return tuple(
        AllReduceTime(int(item["size_bytes"]), int(item["hosts"]), float(item["seconds"]))
        for item in told
    )
