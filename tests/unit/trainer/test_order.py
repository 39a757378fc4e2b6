"""Who gets which image."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.data import DistributedSampler

from paceline.trainer.order import Deal

pytestmark = pytest.mark.torch

counts = st.integers(1, 60)
worlds = st.integers(1, 5)
batches = st.integers(1, 9)


def _dealt(deal: Deal, rank: int, *, seed: int = 0, epoch: int = 0) -> list[int]:
    portions = deal.portions(rank, seed=seed, epoch=epoch)
    return [int(image) for portion in portions for image in portion.images]


@given(counts, worlds, batches, st.integers(0, 3), st.integers(0, 3))
def test_images_are_dealt_as_by_torch(
    count: int, world: int, batch: int, seed: int, epoch: int
) -> None:
    """Each rank gets what DistributedSampler gives it, in the same order."""
    for rank in range(world):
        sampler: DistributedSampler[torch.Tensor] = DistributedSampler(
            torch.arange(count),  # type: ignore[arg-type]
            num_replicas=world,
            rank=rank,
            seed=seed,
        )
        sampler.set_epoch(epoch)
        assert _dealt(Deal(count, batch, world), rank, seed=seed, epoch=epoch) == list(sampler)


@given(counts, worlds, batches)
def test_all_images_are_seen_in_batches_of_the_right_size(
    count: int, world: int, batch: int
) -> None:
    """Together the ranks see every image; all their batches are full but the last."""
    deal = Deal(count, batch, world)
    seen: set[int] = set()
    for rank in range(world):
        portions = list(deal.portions(rank, seed=1, epoch=0))
        assert len(portions) == deal.batches
        assert [len(portion.images) for portion in portions[:-1]] == [batch] * (deal.batches - 1)
        seen |= {int(image) for portion in portions for image in portion.images}
    assert seen == set(range(count))


@given(counts, worlds, batches, st.data())
def test_a_rest_is_what_the_whole_would_have_been(
    count: int, world: int, batch: int, data: st.DataObject
) -> None:
    """Going on after some steps on the same ranks deals exactly what was still to come."""
    whole = Deal(count, batch, world)
    done = data.draw(st.integers(0, whole.batches))
    rest = Deal(count, batch, world, min(done * batch, whole.per_rank) * world)
    for rank in range(world):
        expected = list(whole.portions(rank, seed=5, epoch=2))[done:]
        found = list(rest.portions(rank, seed=5, epoch=2))
        assert [p.images.tolist() for p in found] == [p.images.tolist() for p in expected]
        assert [p.places.tolist() for p in found] == [p.places.tolist() for p in expected]


@given(counts, worlds, worlds, batches, st.data())
def test_another_number_of_ranks_leaves_no_image_out(
    count: int, before: int, after: int, batch: int, data: st.DataObject
) -> None:
    """What is left of an epoch goes to any number of ranks, each image at least once."""
    first = Deal(count, batch, before)
    done = data.draw(st.integers(0, first.batches))
    seen = {
        int(image)
        for rank in range(before)
        for portion in list(first.portions(rank, seed=0, epoch=0))[:done]
        for image in portion.images
    }
    rest = Deal(count, batch, after, min(done * batch, first.per_rank) * before)
    for rank in range(after):
        seen |= set(_dealt(rest, rank))
    assert seen == set(range(count))


def test_each_epoch_has_its_own_order() -> None:
    """The images are shuffled anew in each epoch."""
    deal = Deal(50, 5, 1)
    orders = [tuple(_dealt(deal, 0, epoch=epoch)) for epoch in range(3)]
    assert len(set(orders)) == 3
