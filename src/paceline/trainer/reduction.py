"""Averaging gradients over the ranks while the backward pass still runs.

This is what DistributedDataParallel does, without two of its costs: it loads torch's compiler
when it is made (1.2 s of every start), and it waits for the network at the end of each backward
pass, although other work could be done meanwhile. The collectives are torch.distributed's own.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from paceline.trainer.weights import Segment, Weights
from paceline.trainer.wire import Arrival, Channel, Wire

# Large enough that the latency of a message does not count, small enough that the largest
# layer leaves before the rest of the backward pass is done.
_PIECE_BYTES = 1 << 20


@dataclass(frozen=True)
class Piece:
    """A stretch of the gradient that is sent as one message, and the parameters in it."""

    start: int
    stop: int
    names: tuple[str, ...]


def plan_pieces(segments: tuple[Segment, ...], itemsize: int) -> tuple[Piece, ...]:
    """Cut the gradient into messages, in the order in which they become ready.

    Normalisations become ready all along the pass; they travel with the last piece.
    """
    pieces: list[Piece] = []
    names: list[str] = []
    start = 0
    for segment in segments:
        names.append(segment.name)
        full = (segment.stop - start) * itemsize >= _PIECE_BYTES
        if (full and not segment.keeps_fp32) or segment is segments[-1]:
            pieces.append(Piece(start, segment.stop, tuple(names)))
            start, names = segment.stop, []
    return tuple(pieces)


class Reduction:
    """Sends the gradients of one network as they become ready; nothing to do for one rank."""

    def __init__(self, weights: Weights, wire: Wire | None) -> None:
        self._weights = weights
        self._pieces = plan_pieces(weights.segments, weights.gradient.element_size())
        self._channels: list[Channel] = []
        self._missing: list[int] = []
        self._on_their_way: list[Arrival] = []
        if wire is not None:
            device = weights.master.device
            self._channels = [wire(piece.stop - piece.start, device) for piece in self._pieces]
            self._watch()

    def _watch(self) -> None:
        for number, piece in enumerate(self._pieces):
            for name in piece.names:
                parameter = self._weights.parameters[name]
                parameter.register_post_accumulate_grad_hook(self._ready(number))

    def _ready(self, number: int) -> Callable[[Tensor], None]:
        def on_gradient(_: Tensor) -> None:
            if not self._missing:
                return
            self._missing[number] -= 1
            if self._missing[number] == 0:
                self._send(number)

        return on_gradient

    def arm(self) -> None:
        """Send during the next backward pass; passes before it only add up."""
        self._missing = [len(piece.names) for piece in self._pieces]

    def _send(self, number: int) -> None:
        weights, piece = self._weights, self._pieces[number]
        if piece.stop > weights.tail and weights.low_precision:
            weights.gradient[weights.tail :].copy_(weights.tail_gradient)
        part = slice(piece.start, piece.stop)
        arrival = self._channels[number].send(weights.gradient[part], weights.total[part])
        self._on_their_way.append(arrival)

    def finish(self) -> float:
        """Wait until `weights.total` is the sum over the ranks; return the seconds waited."""
        weights = self._weights
        self._missing = []
        if not self._channels:
            if weights.low_precision:
                weights.total[: weights.tail].copy_(weights.gradient[: weights.tail])
                weights.total[weights.tail :].copy_(weights.tail_gradient)
            return 0.0
        begin = time.perf_counter()
        for arrive in self._on_their_way:
            arrive()
        self._on_their_way = []
        return time.perf_counter() - begin
