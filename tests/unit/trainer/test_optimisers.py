"""The optimisers against torch's own."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

from paceline.trainer.optimisers import Adam, Descent, Optimiser
from paceline.trainer.weights import Weights

pytestmark = pytest.mark.torch


def _network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 4, 4, 2, 1), nn.Tanh(), nn.Flatten(), nn.Linear(16, 2))


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        pytest.param(
            lambda weights: Adam(weights, rate=2e-3, beta1=0.5),
            lambda network: torch.optim.Adam(network.parameters(), 2e-3, betas=(0.5, 0.999)),
            id="adam",
        ),
        pytest.param(
            lambda weights: Descent(weights, rate=0.05),
            lambda network: torch.optim.SGD(network.parameters(), 0.05),
            id="descent",
        ),
    ],
)
@pytest.mark.parametrize("ranks", [1, 3])
def test_updates_are_torchs(
    ours: Callable[[Weights], Optimiser],
    theirs: Callable[[nn.Module], torch.optim.Optimizer],
    ranks: int,
) -> None:
    """Ten steps on the sum of the ranks' gradients are ten of torch's on their mean."""
    plain, network = _network(), _network()
    weights = Weights(network, dtype=torch.float32, device=torch.device("cpu"))
    mine, reference = ours(weights), theirs(plain)
    for _ in range(10):
        images = torch.randn(5, 3, 4, 4)
        reference.zero_grad()
        plain(images).square().mean().backward()
        reference.step()
        (network(images).square().mean() * ranks).backward()
        for segment in weights.segments:
            weights.collect(segment, weights.total)
        mine.step(ranks)
    for found, expected in zip(network.parameters(), plain.parameters(), strict=True):
        assert torch.allclose(found, expected, rtol=1e-4, atol=1e-6)
