"""The generator's input: normal noise that is a pure function of where a sample stands.

Each latent vector depends on the seed, the epoch and the sample's place in the epoch only. So
every rank draws its own, N ranks with batch B see what one rank with batch N*B would see, and
a training that goes on after an interruption, on any number of ranks, draws what it would have
drawn. No state has to be kept anywhere.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

# The constants of the SplitMix64 generator, as signed 64-bit numbers.
_STEP = 0x9E3779B97F4A7C15 - (1 << 64)
_MIX_1 = 0xBF58476D1CE4E5B9 - (1 << 64)
_MIX_2 = 0x94D049BB133111EB - (1 << 64)


def latent(seed: int, epoch: int, places: Tensor, width: int) -> Tensor:
    """Return one standard normal vector of `width` numbers per place, as (N, width) float32."""
    pairs = (width + 1) // 2
    stream = _mix(_mix(torch.tensor([seed]) + _STEP) ^ torch.tensor([epoch]))
    rows = _mix(stream ^ places.to(torch.int64))
    cells = _mix(rows[:, None] + torch.arange(1, pairs + 1) * _STEP)
    # 32 bits for the radius and 32 for the angle: the Box-Muller transform.
    radius = _unit(cells & 0xFFFFFFFF).log_().mul_(-2).sqrt_()
    angle = _unit(_shift(cells, 32)).mul_(2 * math.pi)
    both = torch.cat([radius * angle.cos(), radius * angle.sin()], dim=1)
    return both[:, :width].to(torch.float32)


def _mix(value: Tensor) -> Tensor:
    value = (value ^ _shift(value, 30)) * _MIX_1
    value = (value ^ _shift(value, 27)) * _MIX_2
    return value ^ _shift(value, 31)


def _shift(value: Tensor, bits: int) -> Tensor:
    # torch shifts arithmetically; the mask takes away the copies of the sign.
    return (value >> bits) & ((1 << (64 - bits)) - 1)


def _unit(bits: Tensor) -> Tensor:
    """Map 32 random bits into the open interval (0, 1)."""
    return bits.to(torch.float64).add_(0.5).mul_(2.0**-32)
