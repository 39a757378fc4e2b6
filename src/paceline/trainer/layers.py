"""The layers that the models are made of: the place to plug in faster ones.

A `Layers` makes every layer that has weights. Another implementation must keep the meaning,
and the names and shapes of the parameters, so that checkpoints stay exchangeable.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable

from torch import nn

from paceline.trainer import kernels

Widths = Callable[[int, int], nn.Module]


@dataclass(frozen=True)
class Layers:
    """Makes layers from their widths, in and out. All kernels are 4x4 and have no bias."""

    down: Widths
    up: Widths
    to_point: Widths
    from_point: Widths
    norm: Callable[[int], nn.Module]


def torch_layers() -> Layers:
    """Return torch's own layers."""
    return Layers(
        down=lambda wide_in, out: nn.Conv2d(wide_in, out, 4, 2, 1, bias=False),
        up=lambda wide_in, out: nn.ConvTranspose2d(wide_in, out, 4, 2, 1, bias=False),
        to_point=lambda wide_in, out: nn.Conv2d(wide_in, out, 4, 1, 0, bias=False),
        from_point=lambda wide_in, out: nn.ConvTranspose2d(wide_in, out, 4, 1, 0, bias=False),
        norm=nn.BatchNorm2d,
    )


def cpu_layers() -> Layers:
    """Return layers of the same meaning with faster gradients on CPUs."""
    return Layers(
        down=kernels.Down,
        up=kernels.Up,
        to_point=kernels.ToPoint,
        from_point=kernels.FromPoint,
        norm=nn.BatchNorm2d,
    )
