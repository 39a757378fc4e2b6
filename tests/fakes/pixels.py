"""A prepared image set, written into a folder."""

from __future__ import annotations

import random
import struct
from pathlib import Path

from paceline.datasets import ImageSet


def image_set(
    folder: Path,
    *,
    count: int = 24,
    channels: int = 3,
    side: int = 32,
    classes: int | None = None,
    seed: int = 0,
) -> ImageSet:
    """Write random images, with labels if there are classes."""
    chance = random.Random(seed)  # noqa: S311 - test data
    path = folder / "images.bin"
    path.write_bytes(chance.randbytes(count * channels * side * side))
    labels_path = None
    if classes is not None:
        labels_path = folder / "labels.bin"
        labels = [chance.randrange(classes) for _ in range(count)]
        labels_path.write_bytes(struct.pack(f"<{count}i", *labels))
    names = tuple(str(number) for number in range(classes or 0))
    return ImageSet(
        name="fake",
        split="train",
        path=path,
        count=count,
        channels=channels,
        height=side,
        width=side,
        labels_path=labels_path,
        classes=names,
        source="random bytes",
    )
