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
    segments: tuple[Segment, ...]

    @property
    def part(self) -> slice:
        """Where it lies."""
        return slice(self.start, self.stop)


def plan_pieces(segments: tuple[Segment, ...], itemsize: int) -> tuple[Piece, ...]:
    """Cut the gradient into messages, in the order in which they become ready.

    Normalisations become ready all along the pass; they travel with the last piece.
    """
    pieces: list[Piece] = []
    held: list[Segment] = []
    start = 0
    for segment in segments:
        held.append(segment)
        full = (segment.stop - start) * itemsize >= _PIECE_BYTES
        if (full and not segment.keeps_fp32) or segment is segments[-1]:
            pieces.append(Piece(start, segment.stop, tuple(held)))
            start, held = segment.stop, []
    return tuple(pieces)


class Reduction:
    """Collects the gradients of one network, and sends them as they become ready.

    One rank has nobody to send to: its own gradient is the sum.
    """

    def __init__(self, weights: Weights, wire: Wire | None) -> None:
        self._weights = weights
        self._pieces = plan_pieces(weights.segments, weights.gradient.element_size())
        self._channels: list[Channel] = []
        self._target = weights.total if wire is None else weights.gradient
        self._missing: list[int] = []
        self._on_their_way: list[Arrival] = []
        if wire is not None:
            device = weights.master.device
            self._channels = [wire(piece.stop - piece.start, device) for piece in self._pieces]
        self._watch()

    def _watch(self) -> None:
        for number, piece in enumerate(self._pieces):
            for segment in piece.segments:
                parameter = self._weights.parameters[segment.name]
                parameter.register_post_accumulate_grad_hook(self._ready(number, segment))

    def _ready(self, number: int, segment: Segment) -> Callable[[Tensor], None]:
        def on_gradient(_: Tensor) -> None:
            if not self._missing:
                return
            self._weights.collect(segment, self._target)
            self._missing[number] -= 1
            if self._missing[number] == 0 and self._channels:
                self._send(number)

        return on_gradient

    def arm(self) -> None:
        """Collect and send during the next backward pass; passes before it only add up."""
        self._missing = [len(piece.segments) for piece in self._pieces]

    def _send(self, number: int) -> None:
        weights, part = self._weights, self._pieces[number].part
        arrival = self._channels[number].send(weights.gradient[part], weights.total[part])
        self._on_their_way.append(arrival)

    def kept(self) -> tuple[Tensor, ...]:
        """Return what the wire of this rank keeps between steps, as it is in memory."""
        return tuple(tensor for channel in self._channels for tensor in channel.kept())

    def finish(self) -> float:
        """Wait until `weights.total` is the sum over the ranks; return the seconds waited."""
        self._missing = []
        begin = time.perf_counter()
        for arrive in self._on_their_way:
            arrive()
        self._on_their_way = []
        return time.perf_counter() - begin if self._channels else 0.0
