"""Where a data set lies, and which reader understands it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

from paceline.datasets import cifar, folder, idx, lsun
from paceline.datasets.cache import Recipe
from paceline.datasets.catalogue import Entry, entry_of
from paceline.datasets.places import usual_places
from paceline.datasets.recipes import Wish
from paceline.errors import DataError

SPLITS = ("train", "test")

_RECIPES: Mapping[str, Callable[[Path, Wish], Recipe | None]] = MappingProxyType(
    {"cifar": cifar.recipe, "idx": idx.recipe, "folder": folder.recipe, "lmdb": lsun.recipe}
)

_FINDERS: Mapping[str, Callable[[Path, str], object]] = MappingProxyType(
    {"cifar": cifar.find, "idx": idx.find, "lmdb": lsun.find}
)


def locate(name: str, root: Path | None = None) -> Path | None:
    """Return the folder that a data set lies in, or None.

    Looks at `root` if that is given, and nowhere else: other data under the same name would be
    a surprise. Otherwise at ./NAME, ./data/NAME, $PACELINE_DATA/NAME and
    ~/.cache/paceline/data/NAME.
    """
    entry = entry_of(name)
    places = usual_places(entry.name) if root is None else (Path(root).expanduser(),)
    return next((place for place in places if holds(entry, place)), None)


def holds(entry: Entry, place: Path, splits: tuple[str, ...] = SPLITS) -> bool:
    """Say whether a folder holds any of the splits of a data set, at a glance."""
    return any(_seen(entry, place, split) for split in splits)


def _seen(entry: Entry, place: Path, split: str) -> bool:
    if entry.form == "folder":
        return folder.glance(place, split, entry.name)
    find = _FINDERS.get(entry.form)
    return find is not None and find(place, split) is not None


def recipe_in(place: Path, wish: Wish) -> Recipe:
    """Return how a split that lies in a folder is prepared."""
    recipe = _RECIPES[wish.entry.form](place, wish)
    if recipe is None:
        raise DataError(
            f"{place} holds no {wish.split} images of {wish.entry.title}",
            hint=f"expected are {wish.entry.description}",
        )
    return recipe
