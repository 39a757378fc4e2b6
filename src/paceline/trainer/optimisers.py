"""Adam and plain descent over flat weights.

torch's optimiser classes load torch's compiler when they are made (1.3 s of every start); the
arithmetic is theirs, called directly.
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from paceline.trainer.weights import Weights


class Optimiser(Protocol):
    """Changes the master weights by the summed gradient of `ranks` ranks."""

    def step(self, ranks: int) -> None:
        """Update the weights."""
        ...

    def state(self) -> dict[str, Tensor]:
        """Return what a checkpoint must hold: flat tensors as long as the weights, or scalars."""
        ...


class Adam:
    """Adam as in Kingma and Ba, with torch's fused kernel."""

    def __init__(
        self, weights: Weights, *, rate: float, beta1: float, beta2: float = 0.999
    ) -> None:
        self._weights = weights
        self._rate = rate
        self._betas = (beta1, beta2)
        self._mean = torch.zeros_like(weights.master)
        self._square = torch.zeros_like(weights.master)
        self._steps = torch.zeros((), device=weights.master.device)

    def step(self, ranks: int) -> None:
        """Update the weights."""
        weights = self._weights
        if ranks > 1:
            weights.total.div_(ranks)
        self._steps += 1
        torch._fused_adam_(
            [weights.master],
            [weights.total],
            [self._mean],
            [self._square],
            [],
            [self._steps],
            lr=self._rate,
            beta1=self._betas[0],
            beta2=self._betas[1],
            weight_decay=0.0,
            eps=1e-8,
            amsgrad=False,
            maximize=False,
        )

    def state(self) -> dict[str, Tensor]:
        """Return both moments and the number of steps."""
        return {"mean": self._mean, "square": self._square, "steps": self._steps}


class Descent:
    """Stochastic gradient descent."""

    def __init__(self, weights: Weights, *, rate: float) -> None:
        self._weights = weights
        self._rate = rate

    def step(self, ranks: int) -> None:
        """Update the weights."""
        self._weights.master.add_(self._weights.total, alpha=-self._rate / ranks)

    def state(self) -> dict[str, Tensor]:
        """Return nothing: it remembers nothing."""
        return {}
