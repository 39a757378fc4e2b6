"""The networks of Radford et al. (2015), and a one-layer classifier."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from paceline.trainer.layers import Layers

_SLOPE = 0.2
_FIRST_SIDE = 4


def generator(
    layers: Layers, *, nz: int, width: int, channels: int, image_size: int
) -> nn.Sequential:
    """Return the network that turns noise (N, nz, 1, 1) into images (N, channels, S, S)."""
    parts: list[nn.Module] = []
    wide = width * 2 ** (_doublings(image_size) - 1)
    parts += [layers.from_point(nz, wide), layers.norm(wide), nn.ReLU(inplace=True)]
    while wide > width:
        parts += [layers.up(wide, wide // 2), layers.norm(wide // 2)]
        parts += [nn.ReLU(inplace=True)]
        wide //= 2
    parts += [layers.up(wide, channels), nn.Tanh()]
    return nn.Sequential(*parts)


def discriminator(layers: Layers, *, width: int, channels: int, image_size: int) -> nn.Sequential:
    """Return the network that turns images into one logit each.

    The sigmoid of the paper is part of the loss: together they are exact where apart they
    saturate.
    """
    parts: list[nn.Module] = []
    parts += [layers.down(channels, width)]
    parts += [nn.LeakyReLU(_SLOPE, inplace=True)]
    wide = width
    for _ in range(_doublings(image_size) - 1):
        parts += [layers.down(wide, wide * 2), layers.norm(wide * 2)]
        parts += [nn.LeakyReLU(_SLOPE, inplace=True)]
        wide *= 2
    parts += [layers.to_point(wide, 1), nn.Flatten(0)]
    return nn.Sequential(*parts)


def classifier(features: int, classes: int) -> nn.Sequential:
    """Return the one-layer classifier."""
    return nn.Sequential(nn.Flatten(), nn.Linear(features, classes))


def initialise(network: nn.Module, generator: torch.Generator) -> None:
    """Draw the weights as the paper does: normal, 0.02 wide, around 0 (scales: around 1)."""
    for weight in _kernels(network):
        weight.normal_(0.0, 0.02, generator=generator)
    for layer in _norms(network):
        layer[0].normal_(1.0, 0.02, generator=generator)
        layer[1].zero_()


def _kernels(network: nn.Module) -> Iterator[Tensor]:
    for parameter in network.parameters():
        if parameter.dim() > 1:
            yield parameter.data


def _norms(network: nn.Module) -> Iterator[tuple[Tensor, Tensor]]:
    vectors = [parameter.data for parameter in network.parameters() if parameter.dim() == 1]
    return zip(vectors[::2], vectors[1::2])


def _doublings(image_size: int) -> int:
    return (image_size // _FIRST_SIDE).bit_length() - 1
