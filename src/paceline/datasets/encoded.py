"""Prepares encoded pictures, wherever they lie: decoded once, in parallel, into the cache."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from paceline.datasets.cache import Contents, Draft, Recipe
from paceline.datasets.decoding import BUNDLE, Bad, decoded, require_pillow
from paceline.datasets.images import Failures
from paceline.datasets.recipes import Wish
from paceline.errors import UsageError

DEFAULT_SIZE = 64
_CHANNELS = (1, 3)


@dataclass(frozen=True)
class Pictures:
    """Encoded pictures by name, and how to read one; labels are None where nobody gave any."""

    names: Sequence[str]
    labels: Sequence[int] | None
    read: Callable[[int], bytes]


@dataclass(frozen=True)
class Collection:
    """Pictures that can be opened: what is known of them before they are."""

    total: int
    classes: tuple[str, ...]
    state: tuple[str, ...]
    where: str
    opened: Callable[[], AbstractContextManager[Pictures]]


def recipe_of(root: Path, wish: Wish, collection: Collection) -> Recipe:
    """Return how pictures are prepared at the wished size."""
    size = DEFAULT_SIZE if wish.image_size is None else wish.image_size
    channels = 3 if wish.channels is None else wish.channels
    if channels not in _CHANNELS:
        raise UsageError(f"pictures have 1 or 3 channels, not {channels}")
    total = collection.total

    def write(draft: Draft) -> Contents:
        require_pillow()
        failures = Failures(total)
        with collection.opened() as pictures:
            draft.labelled = pictures.labels is not None
            for chunk in _chunks(pictures, size, channels, failures):
                draft.add(chunk.pixels, chunk.labels, of=total, identity=chunk.identity)
        what = f"{wish.entry.title}: {draft.count:,} {wish.split} images, {collection.where}"
        source = what + failures.sentence()
        return Contents(channels, size, size, collection.classes, source)

    return Recipe(
        name=wish.entry.name,
        split=wish.split,
        wanted=(str(wish.count), str(size), str(channels), str(root.resolve())),
        state=collection.state,
        expected_bytes=total * channels * size * size,
        write=write,
    )


@dataclass(frozen=True)
class _Chunk:
    pixels: bytes
    labels: Sequence[int]
    identity: bytes


def _chunks(pictures: Pictures, size: int, channels: int, failures: Failures) -> Iterator[_Chunk]:
    """Yield the good pictures and their labels, some at a time."""
    hashes: dict[int, bytes] = {}

    def read(number: int) -> bytes:
        encoded = pictures.read(number)
        hashes[number] = hashlib.sha256(encoded).digest()
        return encoded

    good: list[int] = []
    pixels: list[bytes] = []
    identities: list[bytes] = []
    total = len(pictures.names)
    for number, answer in enumerate(decoded(read, total, size=size, channels=channels)):
        identity = hashes.pop(number, b"")
        if isinstance(answer, Bad):
            failures.add(pictures.names[number], answer.reason)
            continue
        good.append(number)
        pixels.append(answer)
        identities.append(identity)
        if len(good) == BUNDLE:
            yield _Chunk(b"".join(pixels), _labels(pictures, good), b"".join(identities))
            good, pixels, identities = [], [], []
    if good:
        yield _Chunk(b"".join(pixels), _labels(pictures, good), b"".join(identities))


def _labels(pictures: Pictures, numbers: Sequence[int]) -> list[int]:
    return [0 if pictures.labels is None else pictures.labels[number] for number in numbers]
