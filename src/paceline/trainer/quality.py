"""How good the samples are, without a judge that would have to be downloaded.

The sliced Wasserstein distance between small patches of real and generated images, on three
scales: patches are projected on random directions, and for each direction the sorted values of
both sides are compared. The distance between two halves of the real images is what chance alone
gives: the floor, below which no difference can be seen.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

_PATCH = 7
_PATCHES_PER_IMAGE = 32
_DIRECTIONS = 128
_SCALES = 3
_SEED = 7


@dataclass(frozen=True)
class Quality:
    """The distance of the samples from the real images, and the floor of that distance."""

    distance: float
    floor: float
    images: int


def compare(real: Tensor, generated: Tensor) -> Quality:
    """Compare generated images with real ones; `real` has twice as many. All in [-1, 1]."""
    count = len(generated)
    first, second = real[:count].float(), real[count : 2 * count].float()
    distance = patch_distance(first, generated.float())
    floor = patch_distance(first, second[: len(first)])
    return Quality(distance, floor, count)


def patch_distance(left: Tensor, right: Tensor) -> float:
    """Return the mean over the scales of the sliced Wasserstein distance of patches."""
    generator = torch.Generator().manual_seed(_SEED)
    distances = []
    for _ in range(_SCALES):
        patches = [_patches(images, generator) for images in (left, right)]
        distances.append(sliced_wasserstein(patches[0], patches[1], generator))
        left, right = F.avg_pool2d(left, 2), F.avg_pool2d(right, 2)
        if left.shape[-1] <= _PATCH:
            break
    return sum(distances) / len(distances)


def sliced_wasserstein(left: Tensor, right: Tensor, generator: torch.Generator) -> float:
    """Return the mean distance of two clouds of points, seen from random directions."""
    directions = torch.randn(_DIRECTIONS, left.shape[1], generator=generator)
    directions /= directions.norm(dim=1, keepdim=True)
    sides = [(directions @ points.t()).sort(dim=1).values for points in (left, right)]
    return float((sides[0] - sides[1]).abs().mean())


def _patches(images: Tensor, generator: torch.Generator) -> Tensor:
    count, channels, height, width = images.shape
    rows = torch.randint(height - _PATCH + 1, (count, _PATCHES_PER_IMAGE), generator=generator)
    columns = torch.randint(width - _PATCH + 1, (count, _PATCHES_PER_IMAGE), generator=generator)
    windows = images.contiguous().unfold(2, _PATCH, 1).unfold(3, _PATCH, 1)
    which = torch.arange(count)[:, None].expand_as(rows)
    found = windows.permute(0, 2, 3, 1, 4, 5)[which, rows, columns]
    return found.reshape(-1, channels * _PATCH * _PATCH)
