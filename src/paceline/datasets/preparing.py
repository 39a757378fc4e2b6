"""From the name of a data set to images that are ready to be memory-mapped."""

from __future__ import annotations

import errno
import shlex
from dataclasses import replace
from pathlib import Path

from paceline.datasets import cache, fake, manifest
from paceline.datasets.cache import Contents, Draft, Recipe
from paceline.datasets.catalogue import Entry, entry_of
from paceline.datasets.finding import SPLITS, locate, recipe_in
from paceline.datasets.nouns import ImageSet, Progress, silent
from paceline.datasets.places import DATA_VARIABLE, usual_places
from paceline.datasets.recipes import Wish
from paceline.errors import DataError, StorageError, UsageError

_LARGEST_SIDE = 4096


def prepare(
    name: str,
    root: Path | None = None,
    *,
    split: str = "train",
    image_size: int | None = None,
    download: bool = False,
    count: int | None = None,
    channels: int | None = None,
    progress: Progress | None = None,
) -> ImageSet:
    """Return a data set as raw images to be memory-mapped; all processes of a host may ask at once.

    `image_size` is the side of encoded pictures (64 unless given) and of generated ones (32);
    CIFAR-10 and MNIST keep their own size. `count` takes fewer images, and any number of
    generated ones. `channels` is for generated images and pictures: 1 is grey.
    """
    tell = silent if progress is None else progress
    wish = _checked(Wish(entry_of(name), split, count, image_size, channels))
    given = None if root is None else Path(root).expanduser()
    try:
        if wish.entry.form == "generated":
            beside = given if given is not None and given.is_dir() else None
            return cache.obtain(fake.recipe(wish), beside, tell)
        place = _place(wish.entry, given, download=download, progress=tell)
        return cache.obtain(guarded(place, wish), place, tell)
    except OSError as error:
        raise _explained(wish.entry, error) from error


def guarded(place: Path, wish: Wish) -> Recipe:
    """Return a recipe that refuses fetched data which is no longer what was fetched."""
    recipe = recipe_in(place, wish)
    expected = manifest.digest_of(place, wish.split)
    if expected is None or wish.count is not None:
        return recipe

    def write(draft: Draft) -> Contents:
        contents = recipe.write(draft)
        if draft.digest(contents) != expected:
            raise DataError(
                f"the {wish.split} images in {place} are not those that were fetched",
                hint=f"fetch {wish.entry.name} again; or, if you changed the files on purpose,"
                f" delete {place / manifest.NAME}",
            )
        return contents

    return replace(recipe, write=write)


def _checked(wish: Wish) -> Wish:
    if wish.split not in SPLITS:
        raise UsageError(f"a split is train or test, not {wish.split!r}")
    for what, number, most in (
        ("image_size", wish.image_size, _LARGEST_SIDE),
        ("count", wish.count, 1 << 31),
        ("channels", wish.channels, 64),
    ):
        if number is not None and not 1 <= number <= most:
            raise UsageError(f"{what} must be between 1 and {most}, not {number}")
    fixed = wish.entry.form in ("cifar", "idx") and wish.entry.shape
    if fixed and wish.channels not in (None, fixed[0]):
        raise UsageError(
            f"{wish.entry.title} has {fixed[0]} channels, and {wish.channels} are asked for",
            hint="leave the channels out; convert colours in the program that trains",
        )
    return wish


def _place(entry: Entry, root: Path | None, *, download: bool, progress: Progress) -> Path:
    found = locate(entry.name, root)
    if found is not None:
        return found
    if download and entry.sources:
        from paceline.datasets.fetching import fetch  # noqa: PLC0415 - HTTP costs 0.1 s

        return fetch(entry.name, root, progress=progress).root
    looked = usual_places(entry.name) if root is None else (root,)
    raise DataError(
        f"{entry.title} is not in " + ", ".join(map(str, looked)),
        hint=_how_to_get(entry, root),
    )


def _how_to_get(entry: Entry, root: Path | None) -> str:
    if entry.sources:
        there = "" if root is None else f" --root {shlex.quote(str(root))}"
        elsewhere = None if root is None else locate(entry.name)
        known = "" if elsewhere is None else f"; it lies at {elsewhere}, too"
        return f"fetch it with: paceline data fetch {entry.name}{there}{known}"
    wanted = f"put {entry.description} into one of them, or name the folder that holds them"
    return wanted if entry.home_page is None else f"{wanted}; it can be had from {entry.home_page}"


def _explained(entry: Entry, error: OSError) -> DataError | StorageError:
    reason = error.strerror or str(error)
    where = f" {error.filename}:" if error.filename else ""
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS):
        return StorageError(
            f"preparing {entry.title} failed:{where} {reason}",
            hint=f"free some space, or set {DATA_VARIABLE} and TMPDIR to a larger disk",
        )
    return DataError(f"{entry.title} cannot be read:{where} {reason}", hint="look at its rights")
