"""The runtime `venv`: an environment on every host, made once from what the user requires.

Each host makes its own: environments hold paths of the machine that they were made on. Where the
hosts have no internet, the wheels are fetched here, or lie here, and travel to all of them.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import secrets
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from paceline.app.broadcast import broadcast, require_delivered
from paceline.app.here import Here
from paceline.app.pairs import End
from paceline.app.requirements import Requirements, read_requirements
from paceline.app.sync import ask_outfit
from paceline.app.workplace import Ground, all_or_named
from paceline.errors import EnvironmentFault, MissingProgram, UsageError
from paceline.model.command import Command
from paceline.model.spec import Spec
from paceline.outfit.venvs import last_errors
from paceline.planning.wheels import PythonKind, download_words, torch_index

CARRY = "carry"
_MAKE_S = 3600.0


@dataclass(frozen=True)
class _Wish:
    """What the environment of a host is made from; `wheels` says which, by their digest."""

    end: End
    required: Requirements
    index: tuple[str, ...]
    wheels: str | None
    kind: PythonKind | None

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self.required), "index": list(self.index), "wheels": self.wheels}


async def prepare_venv(
    spec: Spec, ends: Sequence[End], grounds: Mapping[str, Ground], here: Here
) -> Mapping[str, Ground]:
    """Make the environment of a spec on all hosts that have not got it yet."""
    wishes, found = await _look(spec, ends, grounds)
    lacking = [wish for wish in wishes if not found[wish.end.host.name]["there"]]
    if lacking:
        count = "1 host" if len(lacking) == 1 else f"{len(lacking)} hosts"
        here.say(f"making the environment on {count} …")
        by_wheels: dict[str | None, list[_Wish]] = {}
        for wish in lacking:
            by_wheels.setdefault(wish.wheels, []).append(wish)
        for some in by_wheels.values():
            await _make(spec, some, grounds, here)
    return _with_pythons(grounds, found)


async def foresee_venv(
    spec: Spec, ends: Sequence[End], grounds: Mapping[str, Ground]
) -> Mapping[str, Ground]:
    """Return the grounds with the environments that there are, or will be."""
    _, found = await _look(spec, ends, grounds)
    return _with_pythons(grounds, found)


def _with_pythons(
    grounds: Mapping[str, Ground], found: Mapping[str, Mapping[str, Any]]
) -> Mapping[str, Ground]:
    return {
        name: replace(ground, rank_python=str(found[name]["python"]))
        for name, ground in grounds.items()
    }


async def _look(
    spec: Spec, ends: Sequence[End], grounds: Mapping[str, Ground]
) -> tuple[list[_Wish], Mapping[str, Mapping[str, Any]]]:
    """Return what each host is to have, and whether it has it."""
    wishes = await _wishes(spec, ends)
    found = await all_or_named(
        ask_outfit(
            wish.end,
            "find",
            {"root": _root(grounds[wish.end.host.name]), "wish": wish.to_dict()},
        )
        for wish in wishes
    )
    return wishes, {wish.end.host.name: item for wish, item in zip(wishes, found, strict=True)}


def _root(ground: Ground) -> str:
    return f"{ground.base}/venvs"


async def _wishes(spec: Spec, ends: Sequence[End]) -> list[_Wish]:
    runtime = spec.runtime
    packages = runtime.packages
    if runtime.requirements is None and not packages and spec.job.command is None:
        # torch works without numpy, and warns about it in every rank.
        packages = ("torch", "numpy")
    path = Path(runtime.requirements) if runtime.requirements else None
    required = read_requirements(path, packages)
    index = torch_index(runtime.torch)
    if runtime.wheels is None:
        return [_Wish(end, required, index, None, None) for end in ends]
    if runtime.wheels != CARRY:
        digest = await asyncio.to_thread(_digest_of, Path(runtime.wheels))
        return [_Wish(end, required, (), digest, None) for end in ends]
    answers = await all_or_named(ask_outfit(end, "python", {}) for end in ends)
    wishes = []
    for end, answer in zip(ends, answers, strict=True):
        kind = _kind_of(answer, end)
        inputs = json.dumps([asdict(required), index, asdict(kind)])
        digest = hashlib.sha256(inputs.encode()).hexdigest()[:16]
        wishes.append(_Wish(end, required, index, digest, kind))
    return wishes


def _kind_of(answer: Mapping[str, Any], end: End) -> PythonKind:
    kind = PythonKind(
        str(answer["version"]),
        str(answer["machine"]),
        str(answer["libc_version"]),
        str(answer["implementation"]),
    )
    if answer["libc"] != "glibc" or kind.implementation != "cpython":
        raise EnvironmentFault(
            f"wheels cannot be chosen for its {kind.implementation} on {answer['libc'] or 'musl'}",
            host=end.host.name,
            hint="give a folder of wheels that suit it: `wheels: FOLDER`",
        )
    return kind


def _digest_of(folder: Path) -> str:
    wheels = sorted(folder.glob("*.whl"))
    if not wheels:
        raise UsageError(f"there are no wheels in {folder}", hint="`pip wheel` makes some")
    digest = hashlib.sha256()
    for wheel in wheels:
        digest.update(f"{wheel.name}\0".encode())
        with wheel.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()[:16]


async def _make(
    spec: Spec, wishes: Sequence[_Wish], grounds: Mapping[str, Ground], here: Here
) -> None:
    """Make the environments of hosts that take the same wheels."""
    async with AsyncExitStack() as stack:
        folders: Mapping[str, str] = {}
        if wishes[0].wheels is not None:
            source = await _wheels_here(spec, wishes[0], here)
            folders = await stack.enter_async_context(_carried(wishes, grounds, source))
        await all_or_named(
            ask_outfit(
                wish.end,
                "venv",
                {
                    "root": _root(grounds[wish.end.host.name]),
                    "wish": wish.to_dict(),
                    "wheels": folders.get(wish.end.host.name),
                },
                timeout_s=_MAKE_S,
            )
            for wish in wishes
        )


@asynccontextmanager
async def _carried(
    wishes: Sequence[_Wish], grounds: Mapping[str, Ground], source: Path
) -> AsyncIterator[Mapping[str, str]]:
    """Bring wheels to hosts, in a folder of this visit's own that goes with it."""
    token = secrets.token_hex(4)
    ends = [wish.end for wish in wishes]
    folders = {end.host.name: f"{grounds[end.host.name].base}/wheels-{token}" for end in ends}
    try:
        require_delivered(await broadcast(ends, source, folders))
        yield folders
    finally:
        removals = (
            end.link.run(Command(("rm", "-rf", "--", folders[end.host.name]))) for end in ends
        )
        await asyncio.gather(*removals, return_exceptions=True)


async def _wheels_here(spec: Spec, wish: _Wish, here: Here) -> Path:
    """Return a folder here that holds the wheels of a wish; what was fetched once is kept."""
    if spec.runtime.wheels != CARRY or wish.kind is None:
        return Path(str(spec.runtime.wheels))
    folder = here.stock / "wheels" / str(wish.wheels)
    if not folder.is_dir():
        here.say(f"fetching wheels for Python {wish.kind.short_version} on {wish.kind.machine} …")
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="fetch-", dir=folder.parent) as draft:
            await _fetch(wish, wish.kind, Path(draft), here)
            # Nobody ever sees half of it; whoever comes second finds it there.
            try:
                os.rename(Path(draft) / "wheels", folder)  # noqa: PTH104 - refuses a full folder
            except OSError:
                if not folder.is_dir():
                    raise
    return folder


async def _fetch(wish: _Wish, kind: PythonKind, draft: Path, here: Here) -> None:
    paths = {}
    for name, text in asdict(wish.required).items():
        paths[name] = draft / f"{name}.txt"
        paths[name].write_text(text, encoding="utf-8")
    (draft / "wheels").mkdir()
    words = download_words(
        kind,
        wish.index,
        str(draft / "wheels"),
        str(paths["requirements"]),
        str(paths["constraints"]),
    )
    done = await here.link.run(Command((sys.executable, "-m", "pip", *words)), timeout_s=_MAKE_S)
    if done.ok:
        return
    if "No module named pip" in done.stderr:
        raise MissingProgram(
            f"{sys.executable} has no pip to fetch wheels with",
            hint=f"{sys.executable} -m ensurepip, or give a folder of wheels: `wheels: FOLDER`",
        )
    said = last_errors(done.stderr.strip().splitlines())
    raise EnvironmentFault(
        f"the wheels for Python {kind.version} on {kind.machine} could not be fetched: {said}",
        hint="what has no wheel for that Python must be built there: leave `wheels` out, or give "
        "a folder of wheels that you have built",
    )
