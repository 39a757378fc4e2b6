"""The nouns of the data sets: what is prepared, what was fetched, what was verified."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Callable

Progress = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and how much there is (0: unknown)."""


def silent(what: str, done: int, total: int) -> None:
    """Report progress to nobody."""


@dataclass(frozen=True)
class ImageSet:
    """Images that are ready to be memory-mapped: raw uint8 in the order N, C, H, W.

    `path` holds exactly `count * channels * height * width` bytes. `labels_path` holds one
    little-endian int32 per image, or is None where the images have no labels. `digest` is the
    SHA-256 of the shape, the pixels and the labels: hosts that show the same digest train on
    the same data. Encoded pictures count by their files' bytes, because decoders differ by a
    bit from version to version.
    """

    name: str
    split: str
    path: Path
    count: int
    channels: int
    height: int
    width: int
    labels_path: Path | None
    classes: tuple[str, ...]
    source: str
    digest: str = ""

    @property
    def image_bytes(self) -> int:
        """How many bytes one image takes."""
        return self.channels * self.height * self.width

    @property
    def size_bytes(self) -> int:
        """How many bytes all images take."""
        return self.count * self.image_bytes


@dataclass(frozen=True)
class FetchResult:
    """A data set that lies in `root`, and where it came from."""

    name: str
    root: Path
    source: str
    files: tuple[str, ...]
    size_bytes: int
    digest: str
    already_there: bool = False


@dataclass(frozen=True)
class Part:
    """One split of a data set, as it was found."""

    split: str
    count: int
    shape: tuple[int, ...] | None
    classes: int
    digest: str
    official: bool | None = None


@dataclass(frozen=True)
class Verification:
    """What a look at a whole data set found; `digest` is what hosts compare."""

    name: str
    root: Path | None
    ok: bool
    digest: str
    source: str
    parts: tuple[Part, ...] = ()
    problems: tuple[str, ...] = ()
