"""Taking away what the journal names, and looking whether it is gone."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from paceline.errors import EnvironmentFault
from paceline.rehearsal.machines import grouping
from paceline.rehearsal.machines.commands import attempt
from paceline.rehearsal.machines.journal import Item, Journal

_NAMESPACES = Path("/run/netns")
_LINKS = Path("/sys/class/net")


@dataclass(frozen=True)
class Check:
    """What was found when a rehearsal was over: how much of a kind was made, and what is left."""

    kind: str
    made: int
    left: tuple[str, ...]


@dataclass(frozen=True)
class _Kind:
    """How one kind of thing is found and taken away."""

    exists: Callable[[str], bool]
    remove: Callable[[str], object]


def _remove_group(name: str) -> None:
    folder = Path(name)
    grouping.end_all(folder)
    grouping.remove_group(folder)


_KINDS: Mapping[str, _Kind] = {
    "control group": _Kind(lambda name: Path(name).is_dir(), _remove_group),
    "link": _Kind(
        lambda name: (_LINKS / name).exists(), lambda name: attempt(("ip", "link", "del", name))
    ),
    "namespace": _Kind(
        lambda name: (_NAMESPACES / name).exists(),
        lambda name: attempt(("ip", "netns", "del", name)),
    ),
    "folder": _Kind(
        lambda name: Path(name).exists(), lambda name: shutil.rmtree(name, ignore_errors=True)
    ),
    "file": _Kind(
        lambda name: Path(name).exists(), lambda name: Path(name).unlink(missing_ok=True)
    ),
}


def clear(journal: Journal, items: Sequence[Item]) -> None:
    """Take things away, the youngest first, and strike off the journal those that are gone."""
    journal.strike([item for item in reversed(items) if _taken_away(item)])


def _taken_away(item: Item) -> bool:
    """Take away one thing; tell whether it is gone, which it may have been before."""
    kind = _KINDS[item.kind]
    if kind.exists(item.name):
        with contextlib.suppress(OSError, EnvironmentFault):  # whoever looks afterwards names it
            kind.remove(item.name)
    return not kind.exists(item.name)


def sweep(journal: Journal) -> None:
    """Take away what is left of a rehearsal whose daemon is gone.

    That is everything that was ever written down: what a daemon had under way when it was killed
    may have come about after it was struck off. No name is ever another rehearsal's.
    """
    items = journal.all()
    # Processes first: nothing else goes away while somebody is at work in it.
    for item in items:
        if item.kind == "control group":
            with contextlib.suppress(EnvironmentFault):
                grouping.end_all(Path(item.name))
    clear(journal, items)


def checks(items: Iterable[Item]) -> tuple[Check, ...]:
    """Look for everything that was made, and for what stood in it."""
    by_kind: dict[str, list[str]] = {}
    for item in items:
        by_kind.setdefault(item.kind, []).append(item.name)
    found = [
        Check(f"{kind}s", len(names), tuple(name for name in names if _KINDS[kind].exists(name)))
        for kind, names in sorted(by_kind.items())
    ]
    folders = by_kind.get("folder", [])
    groups = [Path(name) for name in by_kind.get("control group", [])]
    running = [str(entry.pid) for group in groups for entry in grouping.processes_in(group)]
    return (
        *found,
        Check("processes in them", 0, tuple(running)),
        Check("mounts in them", 0, _mounts_below(folders)),
    )


def _mounts_below(folders: list[str]) -> tuple[str, ...]:
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    points = [line.split()[4].encode().decode("unicode_escape") for line in lines]
    return tuple(point for point in points if any(point.startswith(f"{one}/") for one in folders))
