"""A small data set in MNIST's form."""

from __future__ import annotations

import random
import struct
from pathlib import Path


def write_mnist(folder: Path) -> None:
    """Lay out a small data set in MNIST's form."""
    folder.mkdir(parents=True)
    dice = random.Random(0)  # noqa: S311 - pictures, not keys
    for split, count in (("train", 64), ("t10k", 8)):
        pixels = dice.randbytes(count * 28 * 28)
        head = struct.pack(">IIII", 0x803, count, 28, 28)
        (folder / f"{split}-images-idx3-ubyte").write_bytes(head + pixels)
        labels = bytes(number % 10 for number in range(count))
        (folder / f"{split}-labels-idx1-ubyte").write_bytes(
            struct.pack(">II", 0x801, count) + labels
        )
