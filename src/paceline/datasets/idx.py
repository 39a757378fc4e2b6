"""MNIST's IDX format, plain or gzipped: a header that names the sides, then bytes."""

from __future__ import annotations

import gzip
import math
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from paceline.datasets.cache import Contents, Draft, Recipe
from paceline.datasets.recipes import Chunk, Wish, class_names, limited, origin, state_of
from paceline.errors import DataError

_FOLDERS = (".", "raw", "MNIST/raw", "FashionMNIST/raw")
_PREFIXES = {"train": "train", "test": "t10k"}
_BYTES_FOLLOW = b"\0\0\x08"
_IMAGE_SIDES = (3, 4)
_CHUNK_BYTES = 4 << 20
# Deflate cannot pack tighter than this: a header that claims more lies.
_MOST_PER_PACKED_BYTE = 1_100


@dataclass(frozen=True)
class Found:
    """The files of one split; data without labels is fine for a generator."""

    images: Path
    labels: Path | None

    @property
    def files(self) -> tuple[Path, ...]:
        """All files that are there."""
        return (self.images,) if self.labels is None else (self.images, self.labels)


def find(root: Path, split: str) -> Found | None:
    """Return the files of a split below a folder."""
    prefix = _PREFIXES[split]
    for folder in (root / name for name in _FOLDERS):
        images = _first(folder, f"{prefix}-images", "idx3-ubyte")
        if images is not None:
            return Found(images, _first(folder, f"{prefix}-labels", "idx1-ubyte"))
    return None


def _first(folder: Path, start: str, end: str) -> Path | None:
    names = (f"{start}{dot}{end}{gz}" for gz in ("", ".gz") for dot in ("-", "."))
    return next((folder / name for name in names if (folder / name).is_file()), None)


def recipe(root: Path, wish: Wish) -> Recipe | None:
    """Return how a split below a folder is prepared, or None where there is none."""
    found = find(root, wish.split)
    if found is None:
        return None
    sides = read_sides(found.images)
    if len(sides) not in _IMAGE_SIDES:
        raise DataError(f"{found.images} holds no images: it has {len(sides)} sides, not 3 or 4")
    there, (channels, height, width) = sides[0], (1, *sides[1:])[-3:]
    count = there if wish.count is None else min(wish.count, there)

    def write(draft: Draft) -> Contents:
        highest = 0
        image_bytes = channels * height * width
        draft.labelled = found.labels is not None
        for pixels, labels in limited(_chunks(found, image_bytes), wish.count, image_bytes):
            highest = max(highest, *labels)
            draft.add(pixels, labels, of=count)
        names = class_names((), wish.entry.classes, highest) if draft.labelled else ()
        contents = Contents(channels, height, width, names, "")
        digest = draft.digest(contents)
        return contents.described(origin(wish.entry, wish.split, digest, draft.count, root))

    return Recipe(
        name=wish.entry.name,
        split=wish.split,
        wanted=(str(wish.count), str(root.resolve())),
        state=state_of(found.files),
        expected_bytes=count * channels * height * width,
        write=write,
    )


def read_sides(path: Path) -> tuple[int, ...]:
    """Return the sides of the array in a file, after a look at whether it can be that large."""
    with _opened(path) as file, _explained(path):
        sides = _header(file, path)
    size = path.stat().st_size
    body, header = math.prod(sides), 4 + 4 * len(sides)
    if path.suffix == ".gz":
        if body > size * _MOST_PER_PACKED_BYTE:
            raise _wrong(path, f"it claims {body} bytes, which cannot be in a file of {size}")
    elif body + header != size:
        raise _wrong(path, f"it should have {body + header} bytes and has {size}")
    return sides


def _chunks(found: Found, image_bytes: int) -> Iterator[Chunk]:
    labels = None if found.labels is None else _read_labels(found.labels)
    with _opened(found.images) as file, _explained(found.images):
        count = _header(file, found.images)[0]
        if labels is not None and len(labels) != count:
            raise _wrong(found.images, f"it has {count} images, and there are {len(labels)} labels")
        step = max(1, _CHUNK_BYTES // image_bytes)
        for start in range(0, count, step):
            number = min(step, count - start)
            pixels = file.read(number * image_bytes)
            if len(pixels) != number * image_bytes:
                raise _wrong(found.images, "it is cut off")
            yield pixels, bytes(number) if labels is None else labels[start : start + number]
        if file.read(1):
            raise _wrong(found.images, "it goes on after its last image")


def _read_labels(path: Path) -> bytes:
    sides = read_sides(path)
    if len(sides) != 1:
        raise _wrong(path, f"labels have one side, not {len(sides)}")
    with _opened(path) as file, _explained(path):
        _header(file, path)
        labels = file.read(sides[0] + 1)
    if len(labels) != sides[0]:
        raise _wrong(path, f"it should have {sides[0]} labels")
    return labels


def _header(file: BinaryIO, path: Path) -> tuple[int, ...]:
    start = file.read(len(_BYTES_FOLLOW) + 1)
    number = start[-1] if start[:-1] == _BYTES_FOLLOW else 0
    if not number:
        raise _wrong(path, "it does not begin like an IDX file of bytes")
    raw = file.read(4 * number)
    if len(raw) != 4 * number:
        raise _wrong(path, "its header is cut off")
    sides = struct.unpack(f">{number}I", raw)
    if not all(sides):
        raise _wrong(path, "it is empty")
    return sides


def _opened(path: Path) -> BinaryIO:
    return gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb")  # type: ignore[return-value]


class _explained:  # noqa: N801 - used like a function
    """Turns what gzip says about a damaged file into a DataError."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, (EOFError, zlib.error, gzip.BadGzipFile)):
            raise _wrong(self._path, str(error)) from error


def _wrong(path: Path, reason: str) -> DataError:
    return DataError(
        f"{path} is not a sound IDX file: {reason}",
        hint="it is damaged, or only part of it was downloaded; fetch it again",
    )
