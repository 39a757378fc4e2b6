"""The convolutions of our own against torch's."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from paceline.trainer import kernels

pytestmark = pytest.mark.torch

PAIRS = [
    pytest.param(kernels.Down(3, 5), nn.Conv2d(3, 5, 4, 2, 1, bias=False), 8, id="down to 4x4"),
    pytest.param(kernels.Down(3, 5), nn.Conv2d(3, 5, 4, 2, 1, bias=False), 16, id="down to 8x8"),
    pytest.param(kernels.Up(5, 3), nn.ConvTranspose2d(5, 3, 4, 2, 1, bias=False), 4, id="up to 8"),
    pytest.param(kernels.Up(5, 3), nn.ConvTranspose2d(5, 3, 4, 2, 1, bias=False), 8, id="up to 16"),
    pytest.param(kernels.Up(5, 3), nn.ConvTranspose2d(5, 3, 4, 2, 1, bias=False), 2, id="up to 4"),
    pytest.param(kernels.ToPoint(5, 2), nn.Conv2d(5, 2, 4, 1, 0, bias=False), 4, id="to a point"),
    pytest.param(
        kernels.FromPoint(7, 3), nn.ConvTranspose2d(7, 3, 4, 1, 0, bias=False), 1, id="from a point"
    ),
]


def _gradients(layer: nn.Module, images: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    images = images.detach().requires_grad_()
    result = layer(images)
    weight = next(layer.parameters())
    pull = torch.linspace(-1, 1, result.numel(), dtype=result.dtype).view(result.shape)
    back, learnt = torch.autograd.grad((result * pull).sum(), (images, weight))
    return result, back, learnt


@pytest.mark.parametrize(("ours", "theirs", "side"), PAIRS)
def test_results_and_gradients_are_torchs(ours: nn.Module, theirs: nn.Module, side: int) -> None:
    """Forward, backward and the gradient of the kernel are the same up to rounding."""
    torch.manual_seed(0)
    ours.double().to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    theirs.double()
    theirs.load_state_dict(ours.state_dict())
    wide = next(theirs.parameters()).shape[int(isinstance(theirs, nn.Conv2d))]
    images = torch.randn(3, wide, side, side, dtype=torch.float64)
    for found, expected in zip(_gradients(ours, images), _gradients(theirs, images), strict=True):
        assert torch.allclose(found, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(("ours", "theirs", "side"), PAIRS)
def test_names_and_shapes_are_torchs(ours: nn.Module, theirs: nn.Module, side: int) -> None:
    """A checkpoint does not show which layers were at work."""
    del side
    shapes = [
        {name: part.shape for name, part in layer.named_parameters()} for layer in (ours, theirs)
    ]
    assert shapes[0] == shapes[1]


def test_only_what_is_needed_is_computed() -> None:
    """A frozen kernel gathers no gradient, and images that need none get none."""
    layer = kernels.Down(3, 5)
    layer.requires_grad_(requires_grad=False)
    images = torch.randn(2, 3, 8, 8, requires_grad=True)
    layer(images).sum().backward()
    assert images.grad is not None
    assert layer.weight.grad is None
    layer.requires_grad_(requires_grad=True)
    layer(images.detach()).sum().backward()
    assert layer.weight.grad is not None


@pytest.mark.parametrize("with_onednn", [True, False])
def test_products_are_those_of_the_very_numbers(
    monkeypatch: pytest.MonkeyPatch,
    with_onednn: bool,  # noqa: FBT001
) -> None:
    """fp32 loses nothing to a faster library; without that library torch's own serves."""
    if not with_onednn:
        monkeypatch.setattr(kernels, "_onednn_multiplies", lambda: False)
    seeded = torch.Generator().manual_seed(0)
    left = torch.randn(96, 40, generator=seeded).t()
    right = torch.randn(96, 24, generator=seeded)
    exact = left.double() @ right.double()
    for pair in ((left, right), (left.contiguous(), right.t().contiguous().t())):
        torch.testing.assert_close(kernels.product(*pair).double(), exact, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("error", [AttributeError, RuntimeError])
def test_a_torch_without_the_faster_product_is_no_trouble(
    monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    """Another torch may not have the operator, or refuse it: then torch's own product is used."""

    def refuse(left: Tensor, right: Tensor) -> Tensor:
        raise error(left, right)

    monkeypatch.setattr(kernels, "_by_onednn", refuse)
    kernels._onednn_multiplies.cache_clear()
    sample = torch.arange(6.0).view(2, 3)
    assert torch.equal(kernels.product(sample, sample.t()), sample @ sample.t())
    kernels._onednn_multiplies.cache_clear()
