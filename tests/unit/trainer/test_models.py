"""The networks."""

from __future__ import annotations

import pytest
import torch

from paceline.trainer.layers import Layers, cpu_layers, torch_layers
from paceline.trainer.models import classifier, discriminator, generator, initialise

pytestmark = pytest.mark.torch


@pytest.mark.parametrize("layers", [cpu_layers(), torch_layers()], ids=["ours", "torch's"])
@pytest.mark.parametrize(("image_size", "channels"), [(16, 1), (32, 3), (64, 3), (128, 3)])
def test_sizes_fit(layers: Layers, image_size: int, channels: int) -> None:
    """G makes images of the size that D reads; D says one number per image."""
    artist = generator(layers, nz=10, width=4, channels=channels, image_size=image_size)
    judge = discriminator(layers, width=4, channels=channels, image_size=image_size)
    images = artist(torch.randn(2, 10, 1, 1))
    assert images.shape == (2, channels, image_size, image_size)
    assert float(images.detach().abs().max()) <= 1
    assert judge(images).shape == (2,)


def test_the_papers_networks_have_their_size() -> None:
    """For 64x64 colour images both have as many parameters as the public example's."""
    artist = generator(cpu_layers(), nz=100, width=64, channels=3, image_size=64)
    judge = discriminator(cpu_layers(), width=64, channels=3, image_size=64)
    assert sum(part.numel() for part in artist.parameters()) == 3_576_704
    assert sum(part.numel() for part in judge.parameters()) == 2_765_568


def test_weights_begin_as_in_the_paper() -> None:
    """Kernels are normal around 0, scales around 1, both 0.02 wide; offsets are 0."""
    network = discriminator(cpu_layers(), width=32, channels=3, image_size=64)
    initialise(network, torch.Generator().manual_seed(0))
    for name, part in network.named_parameters():
        values = part.detach()
        if part.dim() > 1:
            assert abs(float(values.mean())) < 0.005, name
            assert float(values.std()) == pytest.approx(0.02, rel=0.1), name
        elif name.endswith("bias"):
            assert not values.any()
        else:
            assert float(values.mean()) == pytest.approx(1, abs=0.02), name
            assert float(values.std()) == pytest.approx(0.02, rel=0.5), name


def test_the_same_seed_gives_the_same_weights() -> None:
    """All ranks begin alike."""
    made = []
    for _ in range(2):
        network = generator(cpu_layers(), nz=10, width=4, channels=3, image_size=32)
        initialise(network, torch.Generator().manual_seed(5))
        made.append(torch.cat([part.detach().flatten() for part in network.parameters()]))
    assert torch.equal(made[0], made[1])


def test_the_classifier_is_one_layer() -> None:
    """784 inputs and ten classes: 7,850 parameters."""
    network = classifier(784, 10)
    assert sum(part.numel() for part in network.parameters()) == 7_850
    assert network(torch.zeros(3, 1, 28, 28)).shape == (3, 10)
