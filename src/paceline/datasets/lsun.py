"""LSUN: encoded pictures as the values of LMDB databases, one database for each category."""

from __future__ import annotations

import contextlib
import importlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from paceline.datasets.cache import Recipe
from paceline.datasets.decoding import require_module
from paceline.datasets.encoded import Collection, Pictures, recipe_of
from paceline.datasets.images import spread
from paceline.datasets.recipes import Wish, state_of
from paceline.errors import DataError

_SPLITS = {"train": "train", "test": "val"}
_DATA = "data.mdb"


@dataclass(frozen=True)
class Found:
    """The databases of one split, one for each category, in alphabetical order."""

    folders: tuple[Path, ...]
    categories: tuple[str, ...]

    @property
    def files(self) -> tuple[Path, ...]:
        """The files that hold the data."""
        return tuple(folder / _DATA for folder in self.folders)


def find(root: Path, split: str) -> Found | None:
    """Return the databases of a split below a folder, or the folder if it is a database."""
    if not root.is_dir():
        return None
    pattern = re.compile(rf"(.+)_{_SPLITS[split]}_lmdb")
    hits = sorted(path for path in root.iterdir() if _is_database(path, pattern))
    if hits:
        return Found(tuple(hits), tuple(pattern.sub(r"\1", path.name) for path in hits))
    name = root.resolve().name
    if not (root / _DATA).is_file():
        return None
    if pattern.fullmatch(name):
        return Found((root,), (pattern.sub(r"\1", name),))
    # A database of another name holds what the user says it does: something to train on.
    unnamed = split == "train" and not name.endswith("_val_lmdb")
    return Found((root,), (name,)) if unnamed else None


def _is_database(path: Path, pattern: re.Pattern[str]) -> bool:
    return bool(pattern.fullmatch(path.name)) and (path / _DATA).is_file()


def recipe(root: Path, wish: Wish) -> Recipe | None:
    """Return how LSUN databases are prepared, or None where there are none."""
    found = find(root, wish.split)
    if found is None:
        return None
    there = count(found)
    collection = Collection(
        total=there if wish.count is None else min(wish.count, there),
        classes=found.categories,
        state=(*found.categories, *state_of(found.files)),
        where=f"read from {root}",
        opened=partial(_pictures, found, wish.count),
    )
    return recipe_of(root, wish, collection)


def count(found: Found) -> int:
    """Return how many pictures the databases hold; an empty one is an error."""
    with _environments(found) as environments:
        numbers = [int(environment.stat()["entries"]) for environment in environments]
    if not all(numbers):
        empty = found.folders[numbers.index(0)]
        raise DataError(f"the database {empty} is empty", hint="fetch it again")
    return sum(numbers)


@contextlib.contextmanager
def _pictures(found: Found, count: int | None) -> Iterator[Pictures]:
    with _environments(found) as environments:
        every = [
            (number, key)
            for number, environment in enumerate(environments)
            for key in _keys(environment)
        ]
        chosen = spread(every, count)

        def read(index: int) -> bytes:
            number, key = chosen[index]
            with environments[number].begin() as transaction:
                return bytes(transaction.get(key) or b"")

        names = [f"{found.categories[n]}/{key.decode('ascii', 'replace')}" for n, key in chosen]
        yield Pictures(names, [number for number, _ in chosen], read)


@contextlib.contextmanager
def _environments(found: Found) -> Iterator[list[Any]]:
    require_module("lmdb", "lmdb", "pip install lmdb")
    lmdb: Any = importlib.import_module("lmdb")
    with contextlib.ExitStack() as stack:
        try:
            opened = [
                lmdb.open(str(folder), readonly=True, lock=False, readahead=False, create=False)
                for folder in found.folders
            ]
            for environment in opened:
                stack.callback(environment.close)
            yield opened
        except lmdb.Error as error:
            raise DataError(
                f"an LSUN database in {found.folders[0].parent} cannot be read: {error}",
                hint="it is damaged, or only part of it was downloaded; fetch it again",
            ) from error


def _keys(environment: Any) -> list[bytes]:
    with environment.begin() as transaction, transaction.cursor() as cursor:
        return [bytes(key) for key in cursor.iternext(keys=True, values=False)]
