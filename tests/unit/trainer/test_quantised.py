"""Numbers in 8 bits."""

from __future__ import annotations

import pytest
import torch

from paceline.trainer.quantised import BLOCK, Rounder, unpack

pytestmark = pytest.mark.torch
CPU = torch.device("cpu")


def test_a_number_costs_a_byte() -> None:
    """A block and its scale take little more than a byte per number."""
    parcel = Rounder(3, CPU).pack(torch.randn(3, BLOCK))
    assert parcel.dtype == torch.int8
    assert parcel.numel() == 3 * (BLOCK + 4)


def test_each_block_has_its_own_scale() -> None:
    """Rounding errs by half a level of the block's largest number, however small they are."""
    values = torch.randn(3, BLOCK) * torch.tensor([[1e-6], [1.0], [1e4]])
    found = unpack(Rounder(3, CPU).pack(values))
    largest = values.abs().amax(dim=1, keepdim=True)
    assert bool(((found - values).abs() <= largest / 127 * 0.51).all())


def test_what_is_lost_is_made_up_for() -> None:
    """Over many steps the sum of what was sent is the sum of what was meant."""
    torch.manual_seed(0)
    rounder = Rounder(1, CPU)
    meant, sent = torch.zeros(1, BLOCK), torch.zeros(1, BLOCK)
    for _ in range(200):
        values = torch.randn(1, BLOCK) + 0.001
        meant += values
        sent += unpack(rounder.pack(values))
    assert float((meant - sent).abs().max()) < 0.1


def test_nothing_is_nothing() -> None:
    """A block of zeros stays zero."""
    assert not unpack(Rounder(1, CPU).pack(torch.zeros(1, BLOCK))).any()
