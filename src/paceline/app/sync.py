"""A folder brought to hosts and kept there as it is here; only what has changed travels."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import re
import secrets
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paceline.app.broadcast import broadcast, require_delivered
from paceline.app.pairs import End
from paceline.app.tree import Tree
from paceline.errors import EnvironmentFault
from paceline.model.command import Command

# Below this, a stream to each host is quicker than to let the hosts listen for each other.
_WORTH_A_BROADCAST_BYTES = 4 << 20
_TIMEOUT_S = 300.0
_LONGEST_NAME = 40


@dataclass(frozen=True)
class Sent:
    """What bringing a folder to hosts came to."""

    files: int
    size_bytes: int


def folder_name(root: Path) -> str:
    """Return the name that a folder of ours has on every host: its own, and where it lies here."""
    digest = hashlib.sha256(str(root.resolve()).encode()).hexdigest()[:10]
    words = re.sub(r"[^A-Za-z0-9._-]+", "-", root.resolve().name).strip("-.")[:_LONGEST_NAME]
    return f"{words or 'work'}-{digest}"


async def sync(ends: Sequence[End], tree: Tree, targets: Mapping[str, str], staging: Path) -> Sent:
    """Make each host's target hold what the tree holds; return what had to travel.

    `targets` are folders by the names of the hosts, `staging` is a folder of ours for drafts.
    """
    found = await asyncio.gather(
        *(ask_outfit(end, "look", {"folder": targets[end.host.name]}) for end in ends)
    )
    wanted: dict[str, Any] = {
        "files": {name: [file.digest, file.mode] for name, file in tree.files.items()},
        "links": tree.links,
    }
    if all(answer == wanted for answer in found):
        return Sent(0, 0)
    lacking = {
        name
        for answer in found
        for name, file in tree.files.items()
        if (answer["files"].get(name) or [None])[0] != file.digest
    }
    token = secrets.token_hex(4)
    drafts = {name: f"{target}.{token}.part" for name, target in targets.items()}
    size_bytes = sum(tree.files[name].source.stat().st_size for name in lacking)
    if lacking:
        with _staged(tree, lacking, staging) as draft:
            await _send(ends, draft, drafts, size_bytes)
    await asyncio.gather(
        *(
            ask_outfit(
                end,
                "settle",
                {**wanted, "folder": targets[end.host.name], "draft": drafts[end.host.name]},
            )
            for end in ends
        )
    )
    return Sent(len(lacking), size_bytes)


async def ask_outfit(
    end: End, verb: str, wish: Mapping[str, Any], *, timeout_s: float = _TIMEOUT_S
) -> dict[str, Any]:
    """Say something to what makes a host ready; return its answer."""
    env = {"PYTHONPATH": end.import_path} if end.import_path else {}
    argv = (end.python, "-m", "paceline.outfit", verb)
    command = Command(argv, env=env, stdin=json.dumps(wish).encode())
    done = await end.link.run(command, timeout_s=timeout_s)
    try:
        answer: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    except (ValueError, IndexError) as error:
        last = done.stderr.strip().splitlines()[-1:] or ["it said nothing"]
        raise EnvironmentFault(
            f"the host could not be made ready (exit code {done.exit_code}): {last[0]}",
            host=end.host.name,
        ) from error
    if "error" in answer:
        raise EnvironmentFault(str(answer["error"]), host=end.host.name, hint=answer.get("hint"))
    return answer


async def _send(
    ends: Sequence[End], draft: Path, drafts: Mapping[str, str], size_bytes: int
) -> None:
    if len(ends) > 1 and size_bytes >= _WORTH_A_BROADCAST_BYTES:
        require_delivered(await broadcast(ends, draft, drafts))
        return
    await asyncio.gather(*(end.link.put(draft, drafts[end.host.name]) for end in ends))


@contextmanager
def _staged(tree: Tree, names: set[str], staging: Path) -> Iterator[Path]:
    """Lay out what has to travel in a folder of its own, without a copy where that can be."""
    staging.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="sync-", dir=staging) as folder:
        for name in names:
            place = Path(folder) / name
            place.parent.mkdir(parents=True, exist_ok=True)
            _lay(tree.files[name].source, place)
        yield Path(folder)


def _lay(source: Path, place: Path) -> None:
    with contextlib.suppress(OSError):
        os.link(source, place)
        return
    shutil.copyfile(source, place)
