"""A network that learns: its flat weights, their reduction over the ranks, their optimiser."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn

from paceline.trainer.optimisers import Optimiser
from paceline.trainer.reduction import Reduction
from paceline.trainer.weights import Weights
from paceline.trainer.wire import Wire
from paceline.trainer.world import World

WIRE = "wire"


class Learner:
    """One network of a program."""

    def __init__(
        self,
        network: nn.Module,
        *,
        dtype: torch.dtype,
        device: torch.device,
        world: World,
        wire: Wire | None,
        optimiser: Callable[[Weights], Optimiser],
    ) -> None:
        self.network = network.to(device)
        self.weights = Weights(network, dtype=dtype, device=device)
        self._world = world
        self._reduction = Reduction(self.weights, wire if world.connected else None)
        self._optimiser = optimiser(self.weights)
        self._pending = False
        self.share()

    def share(self) -> None:
        """Give all ranks the weights of rank 0."""
        self._world.broadcast(self.weights.master)
        self.weights.renew()

    def begin(self) -> None:
        """Start a new gradient."""
        self.weights.require_gradients(True)  # noqa: FBT003
        self.weights.clear()

    def last_pass(self) -> None:
        """Say that the next backward pass completes the gradient: it is sent meanwhile."""
        self._reduction.arm()
        self._pending = True

    def update(self) -> float:
        """Take the step that is due, if one is; return the seconds that the network took."""
        if not self._pending:
            return 0.0
        self._pending = False
        waited_s = self._reduction.finish()
        self._optimiser.step(self._world.size)
        self.weights.renew()
        return waited_s

    def freeze(self) -> None:
        """Let gradients flow through the network without gathering any for it."""
        self.weights.require_gradients(False)  # noqa: FBT003

    def snapshot(self) -> dict[str, dict[str, Tensor]]:
        """Return a copy of everything that makes the learner what it is, by names."""
        weights, optimiser = self.weights, self._optimiser.state()
        copied = {"weights": weights.named(weights.master.clone())}
        for name, tensor in optimiser.items():
            whole = tensor.clone()
            copied[f"optimiser.{name}"] = weights.named(whole) if whole.dim() else {"": whole}
        copied["buffers"] = {name: part.clone() for name, part in self.network.named_buffers()}
        return copied

    def kept_on_wires(self) -> Tensor | None:
        """Return what the wires of all ranks keep between steps, a row each, on rank 0.

        Every rank must ask. None on the others, and where nothing is kept.
        """
        kept = self._reduction.kept()
        if not kept:
            return None
        return self._world.gathered(torch.cat([tensor.flatten() for tensor in kept]))

    def _restore_wires(self, rows: Tensor) -> None:
        kept = self._reduction.kept()
        shape = (self._world.size, sum(tensor.numel() for tensor in kept))
        if rows.shape != shape:
            return  # on another number of ranks, or another wire: rounding begins anew
        start = 0
        for tensor in kept:
            tensor.view(-1).copy_(rows[self._world.rank, start : start + tensor.numel()])
            start += tensor.numel()

    @torch.no_grad()
    def restore(self, copied: Mapping[str, Mapping[str, Tensor]]) -> None:
        """Become what a snapshot was taken of."""
        self.weights.fill(self.weights.master, copied["weights"])
        for name, tensor in self._optimiser.state().items():
            parts = copied[f"optimiser.{name}"]
            if tensor.dim():
                self.weights.fill(tensor, parts)
            else:
                tensor.copy_(parts[""])
        for name, part in self.network.named_buffers():
            part.copy_(copied["buffers"][name])
        if WIRE in copied:
            self._restore_wires(copied[WIRE][""])
        self.weights.renew()
