"""Batch normalisation over the batches of all ranks: N ranks see what one big rank would."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.autograd import Function

_OVER = (0, 2, 3)


def _total(*vectors: Tensor) -> tuple[Tensor, ...]:
    """Sum small vectors over the ranks in one message; float64 keeps the variance exact."""
    box = torch.stack([vector.double() for vector in vectors])
    if dist.is_initialized():
        dist.all_reduce(box)
    return tuple(box.unbind())


def _wide(vector: Tensor) -> Tensor:
    return vector.float()[None, :, None, None]


class _Normalise(Function):
    @staticmethod
    def forward(
        ctx: Any, images: Tensor, weight: Tensor, bias: Tensor, eps: float
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        exact = images.double()
        count = torch.full_like(exact[0, :, 0, 0], images.numel() / images.shape[1])
        sums, squares, count = _total(exact.sum(_OVER), exact.square().sum(_OVER), count)
        mean = sums / count
        variance = (squares / count - mean.square()).clamp_min_(0)
        scale = (variance + eps).rsqrt()
        normal = (images.float() - _wide(mean)) * _wide(scale)
        ctx.save_for_backward(normal, weight, scale, count)
        ctx.mark_non_differentiable(mean, variance, count)
        result = normal * _wide(weight) + _wide(bias)
        return result.to(images.dtype), mean, variance, count

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        normal, weight, scale, count = ctx.saved_tensors
        back = gradients[0].float()
        # What a rank keeps for itself: its share of the parameters' gradients, averaged later.
        for_bias = back.sum(_OVER)
        for_weight = (back * normal).sum(_OVER)
        mean_back, mean_product = _total(for_bias, for_weight)
        inner = back - _wide(mean_back / count) - normal * _wide(mean_product / count)
        images = inner * (_wide(weight) * _wide(scale))
        return images.to(gradients[0].dtype), for_weight, for_bias, None


class SharedNorm(nn.BatchNorm2d):
    """`BatchNorm2d` with the statistics of all ranks' batches while training.

    Where statistics are not tracked (samples are drawn), it is an ordinary one.
    """

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002 - the name of the base class
        """Normalise."""
        if not (self.training and self.track_running_stats):
            return super().forward(input)
        parts = (input, self.weight, self.bias, self.eps)
        result, mean, variance, count = _Normalise.apply(*parts)  # type: ignore[no-untyped-call]
        self._remember(mean, variance, float(count[0]))
        return result  # type: ignore[no-any-return]

    @torch.no_grad()
    def _remember(self, mean: Tensor, variance: Tensor, count: float) -> None:
        momentum = 0.1 if self.momentum is None else self.momentum
        assert self.running_mean is not None and self.running_var is not None  # noqa: S101, PT018
        assert self.num_batches_tracked is not None  # noqa: S101
        self.num_batches_tracked.add_(1)
        self.running_mean.lerp_(mean.float(), momentum)
        unbiased = variance * (count / max(count - 1, 1))
        self.running_var.lerp_(unbiased.float(), momentum)
