"""A small CIFAR-10, in the files that the official archive unpacks to."""

from __future__ import annotations

import pickle
from pathlib import Path

_NAMES = ("airplane", "automobile", "bird", "cat", "deer")
_MORE_NAMES = ("dog", "frog", "horse", "ship", "truck")


def write_cifar(root: Path, images: int) -> None:
    """Write so many images for training, and a few for testing, below a folder."""
    import numpy as np

    folder = root / "cifar-10-batches-py"
    folder.mkdir(parents=True)
    random = np.random.default_rng(0)
    share, rest = divmod(images, 5)
    counts = {f"data_batch_{number}": share + (number <= rest) for number in range(1, 6)}
    for name, count in {**counts, "test_batch": 16}.items():
        content = {
            b"batch_label": name.encode(),
            b"labels": [index % 10 for index in range(count)],
            b"data": random.integers(0, 256, (count, 3072), dtype=np.uint8),
            b"filenames": [b"%d.png" % index for index in range(count)],
        }
        (folder / name).write_bytes(pickle.dumps(content, protocol=2))
    names = {"label_names": [*_NAMES, *_MORE_NAMES]}
    (folder / "batches.meta").write_bytes(pickle.dumps(names, protocol=2))
