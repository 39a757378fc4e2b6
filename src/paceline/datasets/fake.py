"""Generated images: the same on every host, cheap to make, and with something to learn.

Each class is a wave of its own direction, length and colour; each image shifts the wave,
changes its brightness and adds noise. Only integers are used, so that no rounding of a
mathematical library can make two hosts differ.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import lru_cache

from paceline.datasets.cache import Contents, Draft, Recipe
from paceline.datasets.recipes import Wish

CLASSES = tuple(f"wave {number}" for number in range(10))
DEFAULT_COUNT = {"train": 10_000, "test": 2_000}
_DIRECTIONS = ((1, 0), (0, 1), (1, 1), (1, -1), (2, 1))
_LEVELS = 32
DEFAULT_SIZE = 32
_CHUNK = 500


def recipe(wish: Wish) -> Recipe:
    """Return how generated images of the wished shape are made."""
    split = wish.split
    count = DEFAULT_COUNT[split] if wish.count is None else wish.count
    channels = 3 if wish.channels is None else wish.channels
    size = DEFAULT_SIZE if wish.image_size is None else wish.image_size

    def write(draft: Draft) -> Contents:
        for pixels, labels in _chunks(split, count, channels, size):
            draft.add(pixels, labels, of=count)
        shape = f"{channels}x{size}x{size}"
        source = f"{count:,} generated images of the same shape ({shape}): no real data"
        return Contents(channels, size, size, CLASSES, source)

    return Recipe(
        name=wish.entry.name,
        split=split,
        wanted=(str(count), str(channels), str(size)),
        state=("generator 1",),
        expected_bytes=count * channels * size * size,
        write=write,
    )


def _chunks(split: str, count: int, channels: int, size: int) -> Iterator[tuple[bytes, list[int]]]:
    source = random.Random(f"paceline {split}")  # noqa: S311 - wanted: the same on every host
    for start in range(0, count, _CHUNK):
        length = min(_CHUNK, count - start)
        labels = [source.randrange(len(CLASSES)) for _ in range(length)]
        yield b"".join(_image(source, label, channels, size) for label in labels), labels


def _image(source: random.Random, label: int, channels: int, size: int) -> bytes:
    left, top = source.randrange(size), source.randrange(size)
    table = _brightness()[source.randrange(_LEVELS)]
    planes = [_window(_tile(label, channel, size), left, top, size) for channel in range(channels)]
    clean = b"".join(planes).translate(table)
    # Values stay below 240 and the noise below 16, so that no byte carries into the next.
    noise = source.getrandbits(8 * len(clean)) & _low_nibbles(len(clean))
    return (int.from_bytes(clean, "little") + noise).to_bytes(len(clean), "little")


def _window(tile: bytes, left: int, top: int, size: int) -> bytes:
    width = 2 * size
    starts = range(top * width + left, (top + size) * width + left, width)
    return b"".join([tile[start : start + size] for start in starts])


@lru_cache(maxsize=64)
def _tile(label: int, channel: int, size: int) -> bytes:
    """Return a wave over twice the size of an image, to cut shifted windows from."""
    across, down = _DIRECTIONS[label % len(_DIRECTIONS)]
    period = max(4, size // (2 if label < len(_DIRECTIONS) else 4))
    phase = (channel * (label + 1) * period) // 6
    return bytes(
        _triangle(across * x + down * y + phase, period)
        for y in range(2 * size)
        for x in range(2 * size)
    )


def _triangle(position: int, period: int) -> int:
    inside = position % period
    return 239 * min(inside, period - inside) * 2 // period


@lru_cache(maxsize=1)
def _brightness() -> tuple[bytes, ...]:
    return tuple(
        bytes(min(239, (level + _LEVELS) * value // (2 * _LEVELS)) for value in range(256))
        for level in range(_LEVELS)
    )


@lru_cache(maxsize=4)
def _low_nibbles(length: int) -> int:
    return int.from_bytes(b"\x0f" * length, "little")
