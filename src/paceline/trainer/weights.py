"""The weights of a network in one piece of memory, and so are their gradients.

The master copy is fp32. Where the network computes in bf16, its kernels are a bf16 copy that is
renewed after each update; normalisations stay fp32. One piece means: one cast, one optimiser
call and few messages instead of one of each per layer. The parts lie in the order in which a
backward pass finishes their gradients.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

_IMAGE_KERNEL_DIMS = 4


@dataclass(frozen=True)
class Segment:
    """Where one parameter lies in the flat memory."""

    name: str
    shape: torch.Size
    start: int
    keeps_fp32: bool

    @property
    def stop(self) -> int:
        """The first place behind it."""
        return self.start + self.shape.numel()

    def view(self, flat: Tensor) -> Tensor:
        """Return its part of a flat tensor, in its shape; image kernels are channels-last."""
        part = flat[self.start : self.stop]
        if len(self.shape) != _IMAGE_KERNEL_DIMS:
            return part.view(self.shape)
        outer, inner, height, width = self.shape
        return part.view(outer, height, width, inner).permute(0, 3, 1, 2)


def plan_segments(network: nn.Module) -> tuple[Segment, ...]:
    """Lay the parameters out: in the order of a backward pass, normalisations at the end."""
    entries = []
    for prefix, module in network.named_modules():
        keeps_fp32 = isinstance(module, nn.modules.batchnorm._NormBase)  # noqa: SLF001
        for name, parameter in module.named_parameters(recurse=False):
            full_name = f"{prefix}.{name}" if prefix else name
            entries.append((keeps_fp32, full_name, parameter.shape))
    segments: list[Segment] = []
    start = 0
    entries.reverse()
    entries.sort(key=lambda entry: entry[0])  # a stable sort: the order stays otherwise
    for keeps_fp32, name, shape in entries:
        segments.append(Segment(name, shape, start, keeps_fp32))
        start = segments[-1].stop
    return tuple(segments)


class Weights:
    """The parameters of one network, flat; the network's own parameters become views of them."""

    def __init__(self, network: nn.Module, *, dtype: torch.dtype, device: torch.device) -> None:
        self.segments = plan_segments(network)
        self.size = self.segments[-1].stop
        self.tail = next((s.start for s in self.segments if s.keeps_fp32), self.size)
        self.parameters = dict(network.named_parameters())
        self.master = torch.empty(self.size, device=device)
        self.low_precision = dtype != torch.float32
        for segment in self.segments:
            segment.view(self.master).copy_(self.parameters[segment.name].data)
        self.working = self.master
        # What a backward pass found, in the format it computes in; and the fp32 sum over the
        # ranks, which the update uses. In fp32 they are the same memory.
        self.total = torch.zeros(self.size, device=device)
        self.gradient = self.total
        if self.low_precision:
            self.gradient = torch.zeros(self.size, device=device, dtype=dtype)
            self.working = torch.empty(self.tail, device=device, dtype=dtype)
            self.renew()
        self._attach()

    def _attach(self) -> None:
        for segment in self.segments:
            flat = self.master if segment.keeps_fp32 else self.working
            self.parameters[segment.name].data = segment.view(flat)

    def clear(self) -> None:
        """Forget the gradients."""
        for parameter in self.parameters.values():
            parameter.grad = None

    def collect(self, segment: Segment, flat: Tensor) -> None:
        """Move the gradient of one parameter to its place in a flat tensor.

        Until then it is the tensor that the backward pass made: no zeros are written and added
        to first, which at a batch of 16 would be 5% of a step.
        """
        parameter = self.parameters[segment.name]
        gradient, parameter.grad = parameter.grad, None
        assert gradient is not None  # noqa: S101
        segment.view(flat).copy_(gradient)

    def renew(self) -> None:
        """Bring the copy that the network computes with up to the master."""
        if self.low_precision:
            self.working.copy_(self.master[: self.tail])

    def require_gradients(self, required: bool) -> None:  # noqa: FBT001
        """Let the network learn, or be looked through only."""
        for parameter in self.parameters.values():
            parameter.requires_grad_(required)

    def named(self, flat: Tensor) -> dict[str, Tensor]:
        """Return the parts of a flat tensor by the names of the parameters."""
        return {segment.name: segment.view(flat) for segment in self.segments}

    def fill(self, flat: Tensor, parts: Mapping[str, Tensor]) -> None:
        """Copy named parts into a flat tensor."""
        for name, part in self.named(flat).items():
            part.copy_(parts[name])
