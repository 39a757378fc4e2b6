"""The cache of prepared images: built once per host, published by rename, never half there.

A prepared set is three files of one stem: `.images` (raw uint8), `.labels` (int32) and
`.json`, which is renamed into place last. A set counts only when its `.json` is there and the
other two have exactly the sizes that it names.
"""

from __future__ import annotations

import array
import errno
import hashlib
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import IO, Any, BinaryIO

from paceline.datasets.locks import exclusive
from paceline.datasets.nouns import ImageSet, Progress, silent
from paceline.datasets.places import CACHE_VARIABLE, cache_places, require_space, usable
from paceline.errors import StorageError

FORMAT = 1
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_PARTS = (".images", ".labels", ".json")


@dataclass(frozen=True)
class Contents:
    """What was written into a draft: the facts that cannot be seen in the raw bytes."""

    channels: int
    height: int
    width: int
    classes: tuple[str, ...]
    source: str

    def described(self, source: str) -> Contents:
        """Return the same contents with the sentence that says what data this is."""
        return replace(self, source=source)


@dataclass(frozen=True)
class Recipe:
    """How one prepared set is made; known before any image is read.

    `wanted` is what was asked for, `state` is how the source files look today: a set that was
    made of the same wish from other files is out of date.
    """

    name: str
    split: str
    wanted: tuple[str, ...]
    state: tuple[str, ...]
    expected_bytes: int
    write: Callable[[Draft], Contents] = field(compare=False)

    @property
    def family(self) -> str:
        """The part of the stem that stays when the source files change."""
        return f"{self.name}-{self.split}-{_short_hash(self.wanted)}"

    @property
    def stem(self) -> str:
        """The name of the three files without their endings."""
        return f"{self.family}-{_short_hash((str(FORMAT), *self.state))}"


def _short_hash(words: Sequence[str]) -> str:
    return hashlib.sha256("\0".join(words).encode("utf-8", "surrogateescape")).hexdigest()[:16]


class Draft:
    """Takes images in order, and knows their number and their digest."""

    def __init__(self, images: BinaryIO, labels: BinaryIO, progress: Progress) -> None:
        self.count = 0
        self.labelled = True
        self.progress = progress
        self._images = images
        self._labels = labels
        self._pixels_hash = hashlib.sha256()
        self._labels_hash = hashlib.sha256()

    def add(
        self,
        pixels: bytes | bytearray | memoryview,
        labels: Sequence[int],
        *,
        of: int,
        identity: bytes | None = None,
    ) -> None:
        """Append images and their labels; `of` is the expected total, for the progress.

        `identity` stands for the pixels in the digest where these may differ by a bit from host
        to host, as decoders of pictures do.
        """
        encoded = _little_endian(labels)
        self._images.write(pixels)
        self._labels.write(encoded)
        self._pixels_hash.update(pixels if identity is None else identity)
        self._labels_hash.update(encoded)
        self.count += len(labels)
        self.progress("preparing images", self.count, of)

    def digest(self, contents: Contents) -> str:
        """Return the SHA-256 of shape, pixels and labels."""
        shape = f"{self.count}x{contents.channels}x{contents.height}x{contents.width}"
        labels = self._labels_hash.hexdigest() if self.labelled else "no labels"
        text = f"{shape} {self._pixels_hash.hexdigest()} {labels}"
        return hashlib.sha256(text.encode()).hexdigest()


def _little_endian(labels: Sequence[int]) -> bytes:
    numbers = array.array("i", iter(labels))  # bytes as such would be taken for machine words
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tobytes()


def obtain(recipe: Recipe, root: Path | None, progress: Progress = silent) -> ImageSet:
    """Return the prepared set, building it unless this host has it already."""
    places = cache_places(root)
    for folder in places:
        found = load(folder, recipe.stem)
        if found is not None:
            return found
    refusal: StorageError | None = None
    for folder in filter(usable, places):
        built = _tried(folder, recipe, progress)
        if isinstance(built, ImageSet):
            return built
        refusal = refusal or built
    raise refusal or StorageError(
        f"no folder for the prepared images of {recipe.name} can be written: "
        + ", ".join(map(str, places)),
        hint=f"make one of them writable, or set {CACHE_VARIABLE} to a folder that is",
    )


def load(folder: Path, stem: str) -> ImageSet | None:
    """Return the set of that stem if it is there and whole."""
    images, labels, notes = (folder / f"{stem}{ending}" for ending in _PARTS)
    try:
        facts: dict[str, Any] = json.loads(notes.read_text("utf-8"))
        labelled = bool(facts.pop("labelled"))
        found = ImageSet(
            path=images,
            labels_path=labels if labelled else None,
            classes=tuple(facts.pop("classes")),
            **facts,
        )
        sizes = images.stat().st_size, labels.stat().st_size
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None
    return found if sizes == (found.size_bytes, 4 * found.count) and found.count else None


def _tried(folder: Path, recipe: Recipe, progress: Progress) -> ImageSet | StorageError:
    try:
        return _build_in(folder, recipe, progress)
    except StorageError as error:
        return error


def _build_in(folder: Path, recipe: Recipe, progress: Progress) -> ImageSet:
    with exclusive(folder / f"{recipe.family}.lock", progress) as alone:
        found = load(folder, recipe.stem)
        if found is not None:
            return found
        if alone:
            _remove_outdated(folder, recipe)
        require_space(folder, recipe.expected_bytes, f"preparing {recipe.name}")
        try:
            _write(folder, recipe, progress)
        except OSError as error:
            if error.errno in _FULL:
                raise _full(folder, recipe) from error
            raise
        built = load(folder, recipe.stem)
    if built is None:
        raise StorageError(
            f"the prepared images of {recipe.name} in {folder} vanished or shrank while written",
            hint="is another program cleaning up that folder?",
        )
    return built


def _full(folder: Path, recipe: Recipe) -> StorageError:
    return StorageError(
        f"the disk is full: the images of {recipe.name} could not be written to {folder}",
        hint=f"free some space there, or set {CACHE_VARIABLE} to a folder on a larger disk",
    )


def _write(folder: Path, recipe: Recipe, progress: Progress) -> None:
    """Write the three files under other names, and rename them when all is on the disk."""
    with tempfile.TemporaryDirectory(prefix=f"{recipe.family}.making-", dir=folder) as name:
        made = [Path(name, ending) for ending in _PARTS]
        with made[0].open("wb") as images, made[1].open("wb") as labels:
            _reserve(images, recipe.expected_bytes)
            draft = Draft(images, labels, progress)
            contents = recipe.write(draft)
            images.truncate()
            _settle(images)
            _settle(labels)
        with made[2].open("w", encoding="utf-8") as notes:
            json.dump(_facts(recipe, draft, contents), notes)
            _settle(notes)
        for path, ending in zip(made, _PARTS):
            path.replace(folder / f"{recipe.stem}{ending}")


def _facts(recipe: Recipe, draft: Draft, contents: Contents) -> dict[str, Any]:
    return {
        "name": recipe.name,
        "split": recipe.split,
        "count": draft.count,
        "labelled": draft.labelled,
        "digest": draft.digest(contents),
        **asdict(contents),
    }


def _settle(file: IO[Any]) -> None:
    file.flush()
    os.fsync(file.fileno())


def _reserve(file: BinaryIO, size_bytes: int) -> None:
    """Claim the space first: a full disk is then found in a moment, not after an hour."""
    if size_bytes <= 0:
        return
    try:
        os.posix_fallocate(file.fileno(), 0, size_bytes)
    except OSError as error:
        if error.errno in _FULL:
            raise


def _remove_outdated(folder: Path, recipe: Recipe) -> None:
    """Remove what was made of older source files, and what a killed process left behind.

    A process that has a removed file mapped keeps its view of it.
    """
    for path in folder.glob(f"{recipe.family}-*"):
        path.unlink(missing_ok=True)
    for path in folder.glob(f"{recipe.family}.making-*"):
        shutil.rmtree(path, ignore_errors=True)
