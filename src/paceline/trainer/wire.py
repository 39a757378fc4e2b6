"""How the gradient travels: as it is, or smaller."""

from __future__ import annotations

from typing import Callable, Protocol

import torch
import torch.distributed as dist
from torch import Tensor

from paceline.trainer.quantised import QuantisedChannel

Arrival = Callable[[], None]

_DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}


class Channel(Protocol):
    """Sums one piece of the gradient over all ranks, in the background."""

    def send(self, piece: Tensor, total: Tensor) -> Arrival:
        """Start; the call that is returned waits until `total` (fp32) holds the sum.

        `piece` may be changed. Where it is fp32, it is the same memory as `total`.
        """
        ...

    def kept(self) -> tuple[Tensor, ...]:
        """Return what this rank keeps from one step to the next, as it is in memory."""
        ...


# Makes the channel for a piece of so many numbers.
Wire = Callable[[int, torch.device], Channel]


class PlainChannel:
    """Sends in one format; rounding is all that is lost."""

    def __init__(self, dtype: torch.dtype) -> None:
        self._dtype = dtype

    def send(self, piece: Tensor, total: Tensor) -> Arrival:
        """Start; see `Channel`."""
        if self._dtype == torch.float32 and piece.dtype != torch.float32:
            total.copy_(piece)
            piece = total
        parcel = piece if piece.dtype == self._dtype else piece.to(self._dtype)
        work = dist.all_reduce(parcel, async_op=True)

        def arrive() -> None:
            work.wait()
            if parcel.data_ptr() != total.data_ptr():
                total.copy_(parcel)

        return arrive

    def kept(self) -> tuple[Tensor, ...]:
        """Keep nothing: what rounding takes away is gone."""
        return ()


def make_wire(name: str, ranks: int) -> Wire:
    """Return the wire of that name."""

    def channel(size: int, device: torch.device) -> Channel:
        if name == "int8":
            return QuantisedChannel(size, ranks, device)
        return PlainChannel(_DTYPES[name])

    return channel
