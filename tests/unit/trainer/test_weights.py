"""Weights and gradients in one piece of memory."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from paceline.trainer.weights import Weights, plan_segments

pytestmark = pytest.mark.torch
CPU = torch.device("cpu")


def _network() -> nn.Sequential:
    torch.manual_seed(1)
    return nn.Sequential(
        nn.Conv2d(3, 4, 4, 2, 1, bias=False),
        nn.BatchNorm2d(4),
        nn.Conv2d(4, 6, 4, 2, 1, bias=False),
        nn.BatchNorm2d(6),
        nn.Flatten(),
        nn.Linear(6, 2),
    )


def test_segments_lie_in_the_order_of_a_backward_pass() -> None:
    """The last layer comes first, normalisations last, and nothing overlaps."""
    segments = plan_segments(_network())
    assert [segment.name for segment in segments] == [
        "5.bias",
        "5.weight",
        "2.weight",
        "0.weight",
        "3.bias",
        "3.weight",
        "1.bias",
        "1.weight",
    ]
    assert [segment.start for segment in segments[1:]] == [s.stop for s in segments[:-1]]
    assert [segment.keeps_fp32 for segment in segments] == [False] * 4 + [True] * 4


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_network_computes_as_before(dtype: torch.dtype) -> None:
    """Moving its parameters into flat memory changes no result beyond the format's rounding."""
    plain, network = _network(), _network()
    Weights(network, dtype=dtype, device=CPU)
    images = torch.randn(3, 3, 4, 4)
    found = network(images.to(dtype)).float()
    tolerance = 1e-6 if dtype == torch.float32 else 0.1
    assert torch.allclose(found, plain(images), atol=tolerance, rtol=tolerance)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_gradients_are_collected_into_flat_memory(dtype: torch.dtype) -> None:
    """Passes add up, then each part goes to its place, and none is left for the next step."""
    plain, network = _network(), _network()
    weights = Weights(network, dtype=dtype, device=CPU)
    images = torch.randn(3, 3, 4, 4)
    for _ in range(2):
        plain(images).square().mean().backward()
        network(images.to(dtype)).float().square().mean().backward()
    tolerance = 1e-6 if dtype == torch.float32 else 0.1
    for segment in weights.segments:
        weights.collect(segment, weights.total)
        expected = dict(plain.named_parameters())[segment.name].grad
        assert expected is not None
        found = segment.view(weights.total)
        assert torch.allclose(found, expected, atol=tolerance, rtol=tolerance)
    assert all(parameter.grad is None for parameter in network.parameters())


def test_clearing_forgets_gradients() -> None:
    """What a pass left behind is not added to the next."""
    network = _network()
    weights = Weights(network, dtype=torch.float32, device=CPU)
    network(torch.randn(3, 3, 4, 4)).sum().backward()
    weights.clear()
    assert all(parameter.grad is None for parameter in network.parameters())


def test_a_low_precision_network_follows_its_master() -> None:
    """The master is fp32; renewing brings the working copy up to it, and only then."""
    network = _network()
    weights = Weights(network, dtype=torch.bfloat16, device=CPU)
    kernel, scale = network[0].weight, network[1].weight
    assert isinstance(kernel, Tensor)
    assert isinstance(scale, Tensor)
    assert (weights.master.dtype, kernel.dtype) == (torch.float32, torch.bfloat16)
    assert scale.dtype == torch.float32
    weights.master.add_(1.0)
    before = kernel.clone()
    assert torch.equal(kernel, before)
    weights.renew()
    assert torch.allclose(kernel.float(), before.float() + 1, atol=0.02)


def test_parts_are_found_by_name() -> None:
    """What `named` shows can be filled into another network's weights."""
    first = Weights(_network(), dtype=torch.float32, device=CPU)
    torch.manual_seed(99)
    other = Weights(_network(), dtype=torch.float32, device=CPU)
    other.master.zero_()
    other.fill(other.master, first.named(first.master))
    assert torch.equal(other.master, first.master)


def test_image_kernels_are_channels_last() -> None:
    """A 4x4 kernel lies in memory as convolutions like it."""
    network = _network()
    Weights(network, dtype=torch.float32, device=CPU)
    kernel = network[2].weight
    assert isinstance(kernel, Tensor)
    assert kernel.is_contiguous(memory_format=torch.channels_last)
