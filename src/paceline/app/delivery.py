"""A data set on all hosts: found or fetched once, brought over their own links, verified there."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paceline import datasets
from paceline.app.broadcast import HostFile, OnBytes, broadcast, require_delivered
from paceline.app.pairs import End, Fault
from paceline.app.workplace import all_or_named
from paceline.errors import DataError, PacelineError
from paceline.model.command import Command

_LOOK_WITHIN_S = 30.0
_VERIFY_WITHIN_S = 900.0
_FETCH_WITHIN_S = 3600.0
# What is made of the data is made anew on each host, for its own interpreter and disk.
_STAYS_BEHIND = (".paceline-cache", ".paceline-fetch", ".paceline-fetch.lock")


@dataclass(frozen=True)
class HostPlace:
    """Where a data set lies on a host (None: nowhere), where it belongs, and what was noted of it.

    `digest` is the one that was written down when it was fetched; None where nobody did.
    """

    root: str | None
    target: str
    digest: str | None = None


@dataclass(frozen=True)
class HostData:
    """A data set that lies on a host, whole; nothing was received where it was there already."""

    host: str
    root: str
    digest: str
    received_bytes: int = 0


def can_be_fetched(name: str) -> bool:
    """Whether a data set has a source that it can be had from."""
    return bool(datasets.entry_of(name).sources)


async def bring_data(
    ends: Sequence[End], name: str, root: str | None, *, on_bytes: OnBytes | None = None
) -> tuple[HostData, ...]:
    """Make sure that every host has a data set, the same and whole; return where.

    One host that has it, or this machine, is the source; where nobody has it, the first host
    fetches it, or else this machine does.
    """
    places = await places_of(ends, name, root)
    received: dict[str, int] = {}
    if any(place.root is None for place in places.values()):
        source = await _source(ends, name, root, places)
        targets = {host: place.root or place.target for host, place in places.items()}
        if isinstance(source, HostFile):
            targets[source.host] = source.path
        # What a host has already is left as it is, in whichever form its files are.
        served = [end for end in ends if _is_served(end.host.name, source, places)]
        done = await broadcast(served, source, targets, leave_out=_STAYS_BEHIND, on_bytes=on_bytes)
        require_delivered(done)
        received = {item.host: item.received_bytes for item in done}
    found = await verify_data(ends, name, root)
    require_same(name, found)
    return tuple(
        HostData(item.host, item.root, item.digest, received.get(item.host, 0)) for item in found
    )


def _is_served(host: str, source: Path | HostFile, places: Mapping[str, HostPlace]) -> bool:
    gives = isinstance(source, HostFile) and source.host == host
    return gives or places[host].root is None


async def places_of(ends: Sequence[End], name: str, root: str | None) -> Mapping[str, HostPlace]:
    """Ask every host, at a glance, where a data set lies or belongs."""

    async def ask(end: End) -> HostPlace:
        data = await _said(end, "place", name, root, _LOOK_WITHIN_S)
        return HostPlace(data["root"], str(data["place"]), data.get("digest"))

    found = await all_or_named(ask(end) for end in ends)
    return {end.host.name: place for end, place in zip(ends, found, strict=True)}


async def verify_data(ends: Sequence[End], name: str, root: str | None) -> tuple[HostData, ...]:
    """Let every host look through its copy; one that is not whole is an error."""

    async def look(end: End) -> HostData:
        data = await _said(end, "verify", name, root, _VERIFY_WITHIN_S)
        if not data.get("ok"):
            problems = "; ".join(str(item) for item in data.get("problems", ())) or "unknown"
            raise DataError(
                f"{name} is not whole: {problems}",
                host=end.host.name,
                hint=f"`paceline data fetch {name} --hosts …` brings it to all hosts",
            )
        return HostData(end.host.name, str(data["root"]), str(data["digest"]))

    return tuple(await all_or_named(look(end) for end in ends))


def digest_faults(digests: Mapping[str, str | None]) -> tuple[Fault, ...]:
    """Return a fault for each host that has other data than the first that is known. Pure."""
    known = [(host, digest) for host, digest in digests.items() if digest]
    return tuple(
        Fault(
            host,
            f"the data set there is another one ({digest[:12]}) than on {known[0][0]} "
            f"({known[0][1][:12]})",
            "remove one of them, and `paceline data fetch NAME --hosts …` brings it to all hosts",
        )
        for host, digest in known[1:]
        if digest != known[0][1]
    )


def require_same(name: str, found: Sequence[HostData]) -> None:
    """Raise an error that names the hosts whose data differ from the first one's."""
    faults = digest_faults({item.host: item.digest for item in found})
    if faults:
        lines = "\n".join(f"  {fault.host}: {fault.text}" for fault in faults)
        raise DataError(f"the hosts do not have the same {name}:\n{lines}", hint=faults[0].hint)


async def _source(
    ends: Sequence[End], name: str, root: str | None, places: Mapping[str, HostPlace]
) -> Path | HostFile:
    for host, place in places.items():
        if place.root is not None:
            return HostFile(host, place.root)
    here = datasets.locate(name)
    if here is not None:
        return here.absolute()
    first = ends[0]
    try:
        # The hosts' line to the world is as a rule better than ours.
        data = await _said(first, "fetch", name, root, _FETCH_WITHIN_S)
        return HostFile(first.host.name, str(data["root"]))
    except PacelineError:
        fetched = await asyncio.to_thread(datasets.fetch, name)
        return fetched.root.absolute()


async def _said(end: End, verb: str, name: str, root: str | None, timeout_s: float) -> Any:
    """Return what a host's own part of the data sets says; an error of its own is raised."""
    env = {"PYTHONPATH": end.import_path} if end.import_path else {}
    words = (name,) if root is None else (name, "--root", root)
    argv = (end.python, "-m", "paceline.datasets", verb, *words, "--quiet")
    done = await end.link.run(Command(argv, env=env), timeout_s=timeout_s)
    try:
        data: dict[str, Any] = json.loads(done.stdout)
    except ValueError as error:
        last = done.stderr.strip().splitlines()[-1:] or ["it said nothing"]
        raise DataError(f"{verb} {name} failed: {last[0]}", host=end.host.name) from error
    if "error" in data:
        raise DataError(str(data["message"]), host=end.host.name, hint=data.get("hint"))
    return data
