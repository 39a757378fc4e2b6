"""What all readers of data sets share: a wish, the state of files, and the limit of a count."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Tuple

from paceline.datasets.catalogue import Entry

Chunk = Tuple[bytes, "Sequence[int]"]
"""The pixels of some images, and their labels."""


@dataclass(frozen=True)
class Wish:
    """What is asked of a data set; None means whatever the set has or its default."""

    entry: Entry
    split: str
    count: int | None = None
    image_size: int | None = None
    channels: int | None = None


def state_of(files: Iterable[Path]) -> tuple[str, ...]:
    """Return one line per file that changes whenever the file does."""
    lines = []
    for path in files:
        status = path.stat()
        lines.append(f"{path.name} {status.st_size} {status.st_mtime_ns}")
    return tuple(lines)


def limited(chunks: Iterator[Chunk], count: int | None, image_bytes: int) -> Iterator[Chunk]:
    """Pass on the first `count` images, or all."""
    left = count
    for pixels, labels in chunks:
        if left is None:
            yield pixels, labels
            continue
        if left <= 0:
            return
        yield pixels[: left * image_bytes], labels[:left]
        left -= len(labels)


def origin(entry: Entry, split: str, digest: str, count: int, root: Path) -> str:
    """Say what data this is: the published set, or something else in its format."""
    if digest == entry.digests.get(split):
        return f"{entry.title} as published ({count:,} {split} images), read from {root}"
    return f"{count:,} {split} images in the format of {entry.title}, read from {root}"


def class_names(names: Sequence[str], published: Sequence[str], highest: int) -> tuple[str, ...]:
    """Return the classes' own names, else the published ones if they suffice, else numbers."""
    for known in (names, published):
        if known and highest < len(known):
            return tuple(known)
    return tuple(str(number) for number in range(highest + 1))
