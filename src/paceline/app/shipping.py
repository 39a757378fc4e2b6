"""An image brought from one engine to others: as a file, over the hosts' own links."""

from __future__ import annotations

import asyncio
import gzip
import os
import secrets
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from paceline.app.broadcast import HostFile, broadcast, require_delivered
from paceline.app.engines import EngineFound
from paceline.app.here import Here
from paceline.app.pairs import End
from paceline.app.workplace import Ground, all_or_named
from paceline.errors import EnvironmentFault
from paceline.model.command import Command
from paceline.ports import Transport

LOAD_S = 3600.0
SHORT_S = 120.0
_MOST_LINES = 12
# Below this, an image arrives sooner if it is compressed on the way.
_WORTH_COMPRESSING_BYTES_PER_S = 40e6
_PROBE_BYTES = 1 << 20
_INTO_FILE = 'umask 077; out=$1; shift; exec "$@" > "$out"'


@dataclass(frozen=True)
class Engine:
    """An engine, and the way to it; `end` is None for the one on this machine."""

    found: EngineFound
    link: Transport
    end: End | None = None

    @property
    def where(self) -> str:
        """Where it is, in words."""
        return "here" if self.end is None else f"on {self.end.host.name}"

    async def say(self, *words: str, timeout_s: float = SHORT_S, stdin: bytes | None = None) -> str:
        """Say something to it, and return the answer; a failure is an error."""
        command = Command((*self.found.words, *words), stdin=stdin)
        done = await self.link.run(command, timeout_s=timeout_s)
        if not done.ok:
            raise failed(f"{' '.join(words[:2])} failed", done.stderr or done.stdout, self)
        return done.stdout.strip()

    async def has(self, name: str) -> str | None:
        """Return the identity of an image; None if it is not there."""
        words = ("image", "inspect", "--format", "{{.Id}}", name)
        done = await self.link.run(Command((*self.found.words, *words)), timeout_s=SHORT_S)
        return done.stdout.strip() if done.ok else None


def failed(what: str, said: str, engine: Engine) -> EnvironmentFault:
    """Return the error for what an engine could not do, with its own last words."""
    lines = [line.rstrip() for line in said.strip().splitlines() if line.strip()]
    last = "\n".join(f"  {line}" for line in lines[-_MOST_LINES:])
    host = None if engine.end is None else engine.end.host.name
    return EnvironmentFault(f"{what}:\n{last}", host=host)


async def ship(
    name: str,
    source: Engine,
    lacking: Sequence[Engine],
    grounds: Mapping[str, Ground],
    here: Here,
) -> None:
    """Bring an image from one engine to others: as a file, over the hosts' own links."""
    ends = [engine.end for engine in lacking if engine.end is not None]
    token = secrets.token_hex(4)
    targets = {end.host.name: f"{grounds[end.host.name].base}/image-{token}.tar" for end in ends}
    here.say(f"bringing {name} to {', '.join(targets)} …")
    try:
        if source.end is None:
            await _from_here(name, source, ends, targets, here)
        else:
            await _from_host(name, source, ends, targets, grounds)
        await all_or_named(
            engine.say("load", "--input", targets[engine.end.host.name], timeout_s=LOAD_S)
            for engine in lacking
            if engine.end is not None
        )
    finally:
        removals = (
            end.link.run(Command(("rm", "-f", "--", targets[end.host.name]))) for end in ends
        )
        await asyncio.gather(*removals, return_exceptions=True)
    await all_or_named(_under_its_name(engine, name) for engine in lacking)
    missing = [e.link.host.name for e in lacking if await e.has(name) is None]
    if missing:
        raise EnvironmentFault(f"{name} was loaded on {', '.join(missing)}, and is not there")


async def _under_its_name(engine: Engine, name: str) -> None:
    """Give an image the name that it is known by: podman says where it is from, docker does not."""
    local = f"localhost/{name}"
    if await engine.has(name) is None and await engine.has(local) is not None:
        await engine.say("tag", local, name)


async def _save(name: str, engine: Engine, path: str) -> None:
    # Through a pipe of ours: what sudo's docker writes itself, we could not read.
    words = ("/bin/sh", "-c", _INTO_FILE, "sh", path, *engine.found.words, "save", name)
    done = await engine.link.run(Command(words), timeout_s=LOAD_S)
    if not done.ok:
        raise failed(f"{name} could not be saved", done.stderr, engine)


async def _from_here(
    name: str, source: Engine, ends: Sequence[End], targets: Mapping[str, str], here: Here
) -> None:
    folder = here.stock / "drafts"
    folder.mkdir(parents=True, exist_ok=True)
    plain, packed = (folder / f"image-{secrets.token_hex(4)}{end}" for end in (".tar", ".tar.gz"))
    try:
        await _save(name, source, str(plain))
        chosen = plain
        if await _is_slow(ends[0], targets[ends[0].host.name]):
            await asyncio.to_thread(_compress, plain, packed)
            chosen = packed
        require_delivered(await broadcast(ends, chosen, targets))
    finally:
        for path in (plain, packed):
            path.unlink(missing_ok=True)


async def _is_slow(end: End, target: str) -> bool:
    """Whether the way to a host is so slow that compressing pays."""
    begun = time.monotonic()
    await end.link.put_bytes(os.urandom(_PROBE_BYTES), f"{target}.probe")
    took_s = time.monotonic() - begun
    await end.link.run(Command(("rm", "-f", "--", f"{target}.probe")))
    return _PROBE_BYTES / took_s < _WORTH_COMPRESSING_BYTES_PER_S


def _compress(source: Path, target: Path) -> None:
    with source.open("rb") as plain, gzip.open(target, "wb", compresslevel=1) as packed:
        shutil.copyfileobj(plain, packed, 1 << 20)


async def _from_host(
    name: str,
    source: Engine,
    ends: Sequence[End],
    targets: Mapping[str, str],
    grounds: Mapping[str, Ground],
) -> None:
    end = source.end
    if end is None:
        return
    path = f"{grounds[end.host.name].base}/image-{secrets.token_hex(4)}.tar"
    try:
        await _save(name, source, path)
        everybody = [end, *ends]
        places = {end.host.name: path, **targets}
        deliveries = await broadcast(everybody, HostFile(end.host.name, path), places)
        require_delivered(deliveries)
    finally:
        await end.link.run(Command(("rm", "-f", "--", path)))
