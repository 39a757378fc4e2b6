"""Batches of images, straight from the mapped file: gathered, resized and scaled at once."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from paceline.datasets import ImageSet
from paceline.errors import DataError
from paceline.trainer.order import Portion


@dataclass(frozen=True)
class Batch:
    """What one step of one rank works on."""

    images: Tensor
    labels: Tensor | None
    places: Tensor
    epoch: int

    @property
    def size(self) -> int:
        """How many images there are."""
        return int(self.places.numel())


class Images:
    """A prepared set, mapped: the processes of a host share one copy in the page cache."""

    def __init__(
        self, source: ImageSet, *, size: int, dtype: torch.dtype, device: torch.device
    ) -> None:
        self.source = source
        self._size = size
        self._dtype = dtype
        self._device = device
        shape = (source.count, source.channels, source.height, source.width)
        self._pixels = _mapped(str(source.path), shape, torch.uint8)
        self._labels: Tensor | None = None
        if source.labels_path is not None:
            self._labels = _mapped(str(source.labels_path), (source.count,), torch.int32)

    @property
    def channels(self) -> int:
        """How many channels an image has."""
        return self.source.channels

    def __len__(self) -> int:
        return self.source.count

    def batch(self, portion: Portion, epoch: int) -> Batch:
        """Return the images of a portion, scaled to [-1, 1], on the device."""
        labels = None
        if self._labels is not None:
            labels = self._labels[portion.images].long().to(self._device)
        images = self.scaled(self._pixels[portion.images])
        return Batch(images, labels, portion.places, epoch)

    def some(self, count: int, seed: int) -> Tensor:
        """Return images that were chosen by chance, no more than there are."""
        generator = torch.Generator().manual_seed(seed)
        chosen = torch.randperm(len(self), generator=generator)[:count]
        return self.scaled(self._pixels[chosen])

    def scaled(self, pixels: Tensor) -> Tensor:
        """Resize uint8 images as Pillow does, and scale them to [-1, 1]."""
        if pixels.shape[-2:] != (self._size, self._size):
            side = (self._size, self._size)
            pixels = F.interpolate(pixels, side, mode="bilinear", antialias=True)
        pixels = pixels.to(self._device).contiguous(memory_format=torch.channels_last)
        return pixels.to(torch.float32).mul_(1 / 127.5).sub_(1).to(self._dtype)


def _mapped(path: str, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    # A private mapping: read-only folders work, nothing can be changed, and pages that are only
    # read are the page cache's own.
    size = 1
    for side in shape:
        size *= side
    try:
        return torch.from_file(path, shared=False, size=size, dtype=dtype).view(shape)
    except RuntimeError as error:
        raise DataError(
            f"{path} cannot be mapped: {error}", hint="remove the file to have it made again"
        ) from error
