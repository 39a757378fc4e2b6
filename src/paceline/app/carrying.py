"""Files between here and hosts, to and from all of them at once."""

from __future__ import annotations

import asyncio
import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from paceline.errors import PacelineError, StorageError
from paceline.model.command import Command
from paceline.planning.carrying import Carrying
from paceline.ports import Transport

# What is not absolute lies below the home folder, wherever a login starts.
_LOOK = """case $1 in /*) path=$1;; *) path=${HOME:-$(cd && pwd)}/$1;; esac
echo "$path"; if [ -d "$path" ]; then echo folder; else echo other; fi
"""


@dataclass(frozen=True)
class Carried:
    """What became of a copy on one host: where it lies now, or why it does not."""

    host: str
    path: str
    error: PacelineError | None = None


async def carry(links: Mapping[str, Transport], plan: Carrying) -> tuple[Carried, ...]:
    """Copy to or from all hosts at once; return what became of it on each."""

    async def one(name: str) -> Carried:
        try:
            work = _send if plan.outwards else _fetch
            return Carried(name, await work(links[name], plan))
        except PacelineError as error:
            return Carried(name, plan.remote, error)

    return tuple(await asyncio.gather(*(one(host.name) for host in plan.hosts)))


async def _send(link: Transport, plan: Carrying) -> str:
    source = Path(plan.local)
    if not source.exists():
        raise StorageError(f"there is no {source}")
    target, is_folder = await _found(link, plan.remote)
    if plan.remote.endswith("/") or is_folder:
        target = posixpath.join(target, source.resolve().name)
    await link.put(source, posixpath.normpath(target), timeout_s=None)
    return posixpath.normpath(target)


async def _fetch(link: Transport, plan: Carrying) -> str:
    target = Path(plan.local)
    remote, _ = await _found(link, plan.remote)
    name = posixpath.basename(posixpath.normpath(remote))
    if len(plan.hosts) > 1:
        # What several hosts send must not lie on top of each other.
        target = target / link.host.name.replace("/", "_") / name
    elif plan.local.endswith("/") or target.is_dir():
        target = target / name
    await link.get(remote, target, timeout_s=None)
    return str(target)


async def _found(link: Transport, path: str) -> tuple[str, bool]:
    """Return the whole path that a word means on a host, and whether a folder is there."""
    done = await link.run(Command(("/bin/sh", "-c", _LOOK, "sh", path)))
    whole, _, kind = done.stdout.removesuffix("\n").rpartition("\n")
    return whole, kind == "folder"


def require_carried(done: Sequence[Carried]) -> None:
    """Raise what names every host where a copy failed, and why."""
    errors = [item.error for item in done if item.error is not None]
    if len(errors) == 1:
        raise errors[0]
    if errors:
        lines = "\n".join(f"  {error}" for error in errors)
        kind = type(errors[0])
        raise kind(f"{len(errors)} of {len(done)} copies failed:\n{lines}", hint=errors[0].hint)
