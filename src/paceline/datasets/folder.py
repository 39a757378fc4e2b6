"""Trees of pictures: each folder below the root is a class, however deep its pictures lie."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from paceline.datasets.cache import Recipe
from paceline.datasets.encoded import Collection, Pictures, recipe_of
from paceline.datasets.images import ENDINGS, numbered, spread
from paceline.datasets.recipes import Wish

_SPLITS = {"train": ("train",), "test": ("test", "val", "valid", "validation")}
_INNER = {
    "imagenet": ("ILSVRC/Data/CLS-LOC", "Data/CLS-LOC", "imagenet", "ILSVRC2012"),
    "lfw": ("lfw", "lfw_funneled", "lfw-deepfunneled", "lfw-py/lfw_funneled", "lfw-py/lfw"),
}


@dataclass(frozen=True)
class Found:
    """The pictures of one split: `base` and below, and all class names that the set has."""

    base: Path
    names: tuple[str, ...]
    classes: tuple[str, ...]
    unclassed: int = 0


def find(root: Path, split: str, name: str = "folder") -> Found | None:
    """Return the pictures of a split: of `train`, `val` or `test` folders, or of the whole tree."""
    for base in _bases(root, name):
        folders = _split_folders(base)
        found = _found(base, folders, split)
        if found is not None:
            return found
    return None


def glance(root: Path, split: str, name: str = "folder") -> bool:
    """Say whether there is at least one picture, without a walk through all of them."""
    for base in _bases(root, name):
        folders = _split_folders(base)
        below = folders.get(split) if folders else base if split == "train" else None
        if below is not None and next(_walk(below), None) is not None:
            return True
    return False


def _bases(root: Path, name: str) -> Iterator[Path]:
    for inner in (*_INNER.get(name, ()), "."):
        if (root / inner).is_dir():
            yield root / inner


def _split_folders(base: Path) -> dict[str, Path]:
    """Return the folders of the splits; nothing where `train` is just a class among others."""
    below = _folders(base)
    if not set(below) <= {name for names in _SPLITS.values() for name in names}:
        return {}
    return {
        split: base / name
        for split, names in _SPLITS.items()
        for name in reversed(names)
        if name in below
    }


def _folders(base: Path) -> tuple[str, ...]:
    entries = (entry for entry in os.scandir(base) if not entry.name.startswith("."))
    return tuple(entry.name for entry in entries if entry.is_dir())


def _found(base: Path, folders: Mapping[str, Path], split: str) -> Found | None:
    if not folders:
        return _tree(base, ()) if split == "train" else None
    if split not in folders:
        return None
    # All splits number the classes alike, also where one of them lacks some.
    known = {name for folder in folders.values() for name in _folders(folder)}
    return _tree(folders[split], known)


def _tree(base: Path, known: Iterable[str]) -> Found | None:
    names = tuple(sorted(_walk(base)))
    classed = tuple(name for name in names if "/" in name)
    if not classed:
        return Found(base, names, ()) if names else None
    present = {name.split("/", 1)[0] for name in classed}
    return Found(base, classed, tuple(numbered({*present, *known})), len(names) - len(classed))


def _walk(base: Path) -> Iterator[str]:
    """Yield the pictures below a folder by their path from it; links are followed once."""
    seen: set[tuple[int, int]] = set()
    for folder, below, files in os.walk(base, followlinks=True):
        status = os.stat(folder)  # noqa: PTH116 - a million folders are walked as strings
        if (status.st_dev, status.st_ino) in seen:
            below.clear()
            continue
        seen.add((status.st_dev, status.st_ino))
        below[:] = sorted(name for name in below if not name.startswith("."))
        start = os.path.relpath(folder, base)
        prefix = "" if start == "." else f"{start}/"
        for name in files:
            if os.path.splitext(name)[1].lower() in ENDINGS and not name.startswith("."):  # noqa: PTH122
                yield prefix + name


def recipe(root: Path, wish: Wish) -> Recipe | None:
    """Return how a tree is prepared, or None where there are no pictures."""
    found = find(root, wish.split, wish.entry.name)
    if found is None:
        return None
    names = spread(found.names, wish.count)
    where = f"read from {found.base}"
    if found.unclassed:
        where += f" ({found.unclassed} pictures beside the class folders left out)"
    collection = Collection(
        total=len(names),
        classes=found.classes,
        state=(*found.classes, *_state(found.base, names)),
        where=where,
        opened=partial(_pictures, found, names),
    )
    return recipe_of(root, wish, collection)


@contextlib.contextmanager
def _pictures(found: Found, names: Sequence[str]) -> Iterator[Pictures]:
    numbers = {name: number for number, name in enumerate(found.classes)}
    labels = [numbers[name.split("/", 1)[0]] for name in names] if numbers else None
    yield Pictures(names, labels, lambda index: (found.base / names[index]).read_bytes())


def _state(base: Path, names: Sequence[str]) -> tuple[str, ...]:
    lines = []
    for name in names:
        try:
            status = os.stat(f"{base}/{name}")  # noqa: PTH116 - as above
        except OSError:
            lines.append(f"{name} unreadable")
            continue
        lines.append(f"{name} {status.st_size} {status.st_mtime_ns}")
    return tuple(lines)
