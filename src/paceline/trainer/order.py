"""Which image comes when: a new order in each epoch, dealt out to the ranks.

As DistributedSampler deals: the order is padded from its own beginning to a multiple of the
number of ranks, and rank r takes every N-th image from the r-th on. A partly done epoch is
dealt out anew from where it stands, to the same number of ranks or to another.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Portion:
    """One batch of one rank: which images, and where each stands in the epoch's order."""

    images: Tensor
    places: Tensor


@dataclass(frozen=True)
class Deal:
    """How the images of an epoch go to the ranks; `consumed` of them are done already."""

    count: int
    batch_size: int
    world_size: int
    consumed: int = 0

    @property
    def per_rank(self) -> int:
        """How many images each rank still gets."""
        return max(0, -(-(self.count - self.consumed) // self.world_size))

    @property
    def batches(self) -> int:
        """How many batches are still to come; the last may be smaller."""
        return -(-self.per_rank // self.batch_size)

    def portions(self, rank: int, *, seed: int, epoch: int) -> Iterator[Portion]:
        """Yield the batches of one rank."""
        generator = torch.Generator().manual_seed(seed + epoch)
        order = torch.randperm(self.count, generator=generator)
        places = self.consumed + rank + self.world_size * torch.arange(self.per_rank)
        images = order[places % self.count]
        for start in range(0, self.per_rank, self.batch_size):
            part = slice(start, start + self.batch_size)
            yield Portion(images[part], places[part])
