"""The DCGAN program against the textbook: the same losses from the same weights and batches."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from paceline.events import Place
from paceline.trainer.gan import Gan
from paceline.trainer.images import Batch
from paceline.trainer.options import parse
from paceline.trainer.order import Deal
from paceline.trainer.setup import Ready, make_ready
from paceline.trainer.world import World
from tests.fakes import textbook

pytestmark = pytest.mark.torch

SMALL = ("--nz", "8", "--ngf", "4", "--ndf", "4", "--batch_size", "8", "--count", "64")
WITHIN = 1e-3


def made(*words: str) -> tuple[Ready, Gan]:
    """Return a DCGAN that is ready to be trained on generated images."""
    options = parse(["--dataset", "fake", *SMALL, "--precision", "fp32", "--wire", "fp32", *words])
    ready = make_ready(options, World(Place()))
    assert isinstance(ready.program, Gan)
    return ready, ready.program


def own_batches(ready: Ready, size: int, seed: int = 0) -> Iterator[Batch]:
    """Yield the trainer's batches, epoch after epoch."""
    for epoch in itertools.count():
        for portion in Deal(len(ready.images), size, 1).portions(0, seed=seed, epoch=epoch):
            yield ready.images.batch(portion, epoch)


def plain_batches(ready: Ready, size: int, seed: int = 0) -> Iterator[Tensor]:
    """Yield the textbook's batches: torch's sampler, Pillow's resizing."""
    items = textbook.Items(ready.images.source, 64)
    for epoch in itertools.count():
        for indices in textbook.batches(len(items), size, epoch, seed=seed):
            yield items.images(indices)


def plain_twin(gan: Gan, nz: int, ngf: int, ndf: int, **rates: float) -> textbook.TextbookGan:
    """Return a textbook implementation that begins with the same weights."""
    artist, judge = textbook.generator(nz, ngf, 3), textbook.discriminator(ndf, 3)
    textbook.copy_weights(gan.generator.network, artist)
    textbook.copy_weights(gan.discriminator.network, judge)
    return textbook.TextbookGan(artist, judge, **rates)


def losses_of_both(
    ready: Ready, gan: Gan, plain: textbook.TextbookGan, *, size: int, steps: int, seed: int = 0
) -> Iterator[tuple[tuple[float, float], tuple[float, float]]]:
    """Step both on their own batches of the same data, and yield what both say."""
    both = zip(own_batches(ready, size, seed), plain_batches(ready, size, seed), strict=False)
    for ours, theirs in itertools.islice(both, steps):
        expected = plain.step(theirs, gan.noise(ours).clone())
        metrics = gan.step(ours).metrics
        yield (metrics["loss_d"], metrics["loss_g"]), expected


def test_fifty_iterations_have_the_textbooks_losses() -> None:
    """In fp32, over six epochs, every loss of D and G is that of the plain implementation."""
    # At a rate at which rounding does not grow into another course; see the next test.
    ready, gan = made("--learning_rate", "2e-5")
    plain = plain_twin(gan, 8, 4, 4, rate=2e-5)
    pairs = list(losses_of_both(ready, gan, plain, size=8, steps=50))
    assert len(pairs) == 50
    for ours, expected in pairs:
        assert ours == pytest.approx(expected, rel=WITHIN)
    assert len({expected for _, expected in pairs}) == 50  # they learn


def test_at_the_papers_rate_only_rounding_parts_us_from_the_textbook() -> None:
    """We leave the textbook's course no farther than it leaves its own in another memory layout.

    Adam's first steps are as large for a gradient of mere rounding as for any other, so any two
    orders of summation part within a few iterations.
    """
    ready, gan = made("--ngf", "8", "--ndf", "8", "--batch_size", "32", "--count", "256")
    plain, turned = plain_twin(gan, 8, 8, 8), plain_twin(gan, 8, 8, 8)
    for network in (turned.artist, turned.judge):
        network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    ours_off = theirs_off = 0.0
    both = zip(own_batches(ready, 32), plain_batches(ready, 32), strict=False)
    for ours, theirs in itertools.islice(both, 20):
        noise = gan.noise(ours).clone()
        expected = plain.step(theirs, noise)
        again = turned.step(theirs.contiguous(memory_format=torch.channels_last), noise)
        metrics = gan.step(ours).metrics
        ours_off = max(ours_off, farthest((metrics["loss_d"], metrics["loss_g"]), expected))
        theirs_off = max(theirs_off, farthest(again, expected))
    assert theirs_off > WITHIN
    assert ours_off < 3 * theirs_off


def farthest(some: tuple[float, float], others: tuple[float, float]) -> float:
    """Return the largest relative difference."""
    return max(abs(a / b - 1) for a, b in zip(some, others, strict=True))
