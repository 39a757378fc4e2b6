"""The generator's input."""

from __future__ import annotations

import pytest
import torch

from paceline.trainer.noise import latent

pytestmark = pytest.mark.torch


def test_noise_is_normal() -> None:
    """Mean, deviation, skew, tails and correlation are those of independent normal numbers."""
    drawn = latent(3, 1, torch.arange(4000), 101)
    assert drawn.shape == (4000, 101)
    assert drawn.dtype == torch.float32
    numbers = drawn.double().flatten()
    assert abs(float(numbers.mean())) < 0.01
    assert abs(float(numbers.std()) - 1) < 0.01
    assert abs(float((numbers**3).mean())) < 0.03
    assert abs(float((numbers**4).mean()) - 3) < 0.1
    correlations = torch.corrcoef(drawn.double().t()) - torch.eye(101, dtype=torch.float64)
    assert float(correlations.abs().max()) < 0.1


def test_noise_depends_on_the_place_only() -> None:
    """A sample's noise is the same whichever rank and batch it is in."""
    whole = latent(0, 2, torch.arange(24), 10)
    for rank in range(3):
        places = torch.arange(rank, 24, 3)
        assert torch.equal(latent(0, 2, places, 10), whole[places])


def test_noise_differs_by_seed_epoch_and_place() -> None:
    """No two samples of a training share their noise."""
    rows = [
        latent(seed, epoch, torch.arange(40), 8)
        for seed in (0, 1, 2**40)
        for epoch in (-1, 0, 1, 700)
    ]
    assert len(torch.unique(torch.cat(rows), dim=0)) == 3 * 4 * 40
