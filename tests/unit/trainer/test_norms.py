"""Normalisation over all ranks, as seen by one."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from paceline.trainer.norms import SharedNorm

pytestmark = pytest.mark.torch


def _pair() -> tuple[SharedNorm, nn.BatchNorm2d]:
    torch.manual_seed(0)
    ours, theirs = SharedNorm(3), nn.BatchNorm2d(3)
    nn.init.normal_(ours.weight, 1, 0.5)
    nn.init.normal_(ours.bias)
    theirs.load_state_dict(ours.state_dict())
    return ours, theirs


def test_one_rank_normalises_as_torch_does() -> None:
    """Results, gradients and running statistics are BatchNorm2d's."""
    ours, theirs = _pair()
    for _ in range(3):
        images = torch.randn(4, 3, 5, 5) * 3 + 2
        pull = torch.randn_like(images)
        sides = []
        for layer in (ours, theirs):
            leaf = images.clone().requires_grad_()
            layer.zero_grad()
            result = layer(leaf)
            (result * pull).sum().backward()
            sides.append([result, leaf.grad, layer.weight.grad, layer.bias.grad])
        for found, expected in zip(*sides, strict=True):
            assert torch.allclose(found, expected, rtol=1e-4, atol=1e-5)
    state = theirs.state_dict()
    for name, part in ours.state_dict().items():
        assert torch.allclose(part.float(), state[name].float(), rtol=1e-5, atol=1e-6), name


def test_evaluation_uses_what_was_learnt() -> None:
    """Outside training the running statistics count."""
    ours, theirs = _pair()
    images = torch.randn(4, 3, 5, 5)
    assert torch.equal(ours.eval()(images), theirs.eval()(images))


def test_bf16_images_stay_bf16() -> None:
    """The result has the format of the images; the parameters stay fp32."""
    ours, _ = _pair()
    images = torch.randn(4, 3, 5, 5).bfloat16().requires_grad_()
    result = ours(images)
    result.float().sum().backward()
    assert result.dtype == torch.bfloat16
    assert images.grad is not None
    assert images.grad.dtype == torch.bfloat16
    assert ours.weight.grad is not None
    assert ours.weight.grad.dtype == torch.float32
