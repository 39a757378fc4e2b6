"""Gradients in 8 bits, with what rounding took away added to the next step's.

A sum of 8-bit numbers does not fit in 8 bits, so the reduction is made of two exchanges: each
rank receives its share of the piece from all others, sums it in fp32, and sends the rounded sum
to all. Both roundings keep their error and make up for it in the next step, so that nothing is
lost in the long run. Each block of numbers has its own scale.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import Tensor

BLOCK = 1024
_LEVELS = 127
_SCALE_BYTES = 4


class Rounder:
    """Turns blocks of numbers into bytes and remembers what was lost."""

    def __init__(self, blocks: int, device: torch.device) -> None:
        self.error = torch.zeros(blocks, BLOCK, device=device)

    def pack(self, values: Tensor) -> Tensor:
        """Return (blocks, BLOCK) numbers as (blocks, BLOCK + 4) bytes, errors made up for."""
        wanted = self.error.add_(values)
        scale = wanted.abs().amax(dim=1, keepdim=True).clamp_min_(1e-30) / _LEVELS
        rounded = (wanted / scale).round_()
        wanted.sub_(rounded * scale)
        return torch.cat([rounded.to(torch.int8), scale.view(torch.int8)], dim=1)


def unpack(parcel: Tensor) -> Tensor:
    """Return the numbers in bytes of (..., blocks, BLOCK + 4)."""
    scale = parcel[..., BLOCK:].contiguous().view(torch.float32)
    return parcel[..., :BLOCK].to(torch.float32).mul_(scale)


class QuantisedChannel:
    """Sums one piece of the gradient over all ranks, in 8 bits."""

    def __init__(self, size: int, ranks: int, device: torch.device) -> None:
        self._size = size
        self._ranks = ranks
        self._share = -(-size // (BLOCK * ranks))  # blocks that each rank sums
        self._whole = torch.zeros(ranks * self._share * BLOCK, device=device)
        self._outgoing = Rounder(ranks * self._share, device)
        self._summed = Rounder(self._share, device)

    def send(self, piece: Tensor, total: Tensor) -> Callable[[], None]:
        """Start; the call that is returned waits until `total` holds the sum."""
        self._whole[: self._size] = piece
        mine = self._outgoing.pack(self._whole.view(-1, BLOCK))
        theirs = torch.empty_like(mine)
        work = dist.all_to_all_single(theirs, mine, async_op=True)

        def arrive() -> None:
            work.wait()
            shares = unpack(theirs.view(self._ranks, self._share, -1))
            rounded = self._summed.pack(shares.sum(dim=0))
            gathered = theirs  # as long as what comes now
            dist.all_gather_into_tensor(gathered, rounded)
            total.copy_(unpack(gathered).view(-1)[: self._size])

        return arrive

    def kept(self) -> tuple[Tensor, ...]:
        """Return what both roundings have still to make up for."""
        return (self._outgoing.error, self._summed.error)
