"""The score of the samples."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from paceline.trainer.quality import compare, patch_distance, sliced_wasserstein

pytestmark = pytest.mark.torch


def _images(count: int, seed: int, *, contrast: float = 0.5) -> Tensor:
    """Draw smooth images of one family."""
    generator = torch.Generator().manual_seed(seed)
    coarse = torch.randn(count, 3, 8, 8, generator=generator) * contrast
    side = (32, 32)
    return torch.nn.functional.interpolate(coarse, side, mode="bilinear").clamp(-1, 1)


def test_images_of_the_same_kind_are_at_the_floor() -> None:
    """What differs by chance only scores as chance does."""
    score = compare(_images(256, 1), _images(128, 2))
    assert score.images == 128
    assert score.distance == pytest.approx(score.floor, rel=0.5)


def test_worse_images_score_worse() -> None:
    """Noise is farther from the images than pale copies, and these farther than the floor."""
    real = _images(256, 1)
    pale = compare(real, _images(128, 2, contrast=0.4))
    noise = compare(real, torch.rand(128, 3, 32, 32) * 2 - 1)
    assert noise.distance > 2 * pale.distance
    assert pale.distance > 1.2 * pale.floor


def test_scrambled_images_are_noticed() -> None:
    """The right colours in the wrong places are not enough."""
    real = _images(256, 1)
    pixels = real[128:].flatten(2)
    scrambled = pixels[:, :, torch.randperm(32 * 32)].view(128, 3, 32, 32)
    score = compare(real, scrambled)
    assert score.distance > 3 * score.floor


def test_the_distance_is_a_distance() -> None:
    """It is nothing between equals, the same both ways, and the shift between shifted clouds."""
    generator = torch.Generator()
    points = torch.randn(500, 1)
    assert sliced_wasserstein(points, points, generator.manual_seed(0)) == 0
    shifted = sliced_wasserstein(points, points + 0.25, generator.manual_seed(0))
    assert shifted == pytest.approx(0.25, abs=1e-5)
    other = torch.randn(500, 1)
    there = sliced_wasserstein(points, other, generator.manual_seed(0))
    assert there == pytest.approx(sliced_wasserstein(other, points, generator.manual_seed(0)))


def test_an_image_set_is_near_itself() -> None:
    """Patches from different places of the same images differ less than other images do."""
    images = _images(64, 1)
    assert patch_distance(images, images) < patch_distance(images, _images(64, 2, contrast=0.3))
