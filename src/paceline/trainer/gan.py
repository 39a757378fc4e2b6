"""The DCGAN program: alternating updates of a discriminator and a generator.

The meaning is that of the paper: D sees a real and a fake batch, each normalised by its own
statistics, and learns from the sum of both losses; then G learns from the updated D. What is
ordered for speed, without changing a result:

- D(real) does not depend on G's last update, so G's gradients travel meanwhile;
- the gradients of D(real) and D(fake) add up locally and are reduced once, layer by layer,
  while D(fake) is still going backward;
- D gathers no gradients in G's step.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from paceline.trainer.images import Batch
from paceline.trainer.learner import Learner
from paceline.trainer.noise import latent
from paceline.trainer.program import StepResult


class Gan:
    """Trains both networks."""

    names = ("loss_d", "loss_g", "d_x", "d_gz", "d_gz_after")
    line_every = 1

    def __init__(
        self,
        generator: Learner,
        discriminator: Learner,
        *,
        nz: int,
        seed: int,
        dtype: torch.dtype,
        device: torch.device,
    ) -> None:
        self.generator = generator
        self.discriminator = discriminator
        self._nz = nz
        self._seed = seed
        self._dtype = dtype
        self._device = device

    @property
    def learners(self) -> dict[str, Learner]:
        """The networks by name."""
        return {"generator": self.generator, "discriminator": self.discriminator}

    def step(self, batch: Batch) -> StepResult:
        """Update D, then G. G's update is taken at the next step, or by `finish`."""
        ones = torch.ones(batch.size, device=self._device)
        judge, artist = self.discriminator, self.generator

        judge.begin()
        on_real = judge.network(batch.images).float()
        loss_real = _cross_entropy(on_real, ones)
        loss_real.backward()

        waited_s = artist.update()
        fake = artist.network(self.noise(batch))

        judge.last_pass()
        on_fake = judge.network(fake.detach()).float()
        loss_fake = _cross_entropy(on_fake, torch.zeros_like(ones))
        loss_fake.backward()
        waited_s += judge.update()

        judge.freeze()
        artist.begin()
        artist.last_pass()
        judged = judge.network(fake).float()
        loss_artist = _cross_entropy(judged, ones)
        loss_artist.backward()

        losses = (loss_real + loss_fake, loss_artist)
        return StepResult(_figures(losses, (on_real, on_fake, judged)), waited_s)

    def finish(self) -> float:
        """Take the update that is still due; return the seconds waited for other ranks."""
        return self.generator.update()

    def line(self, metrics: Mapping[str, float]) -> str:
        """Return the figures as the public program prints them."""
        return (
            f"Loss_D: {metrics['loss_d']:.4f}, Loss_G: {metrics['loss_g']:.4f}, "
            f"D(x): {metrics['d_x']:.4f}, "
            f"D(G(z)): {metrics['d_gz']:.4f} / {metrics['d_gz_after']:.4f}"
        )

    def noise(self, batch: Batch) -> Tensor:
        """Return the generator's input for a batch."""
        return self._as_input(latent(self._seed, batch.epoch, batch.places, self._nz))

    def _as_input(self, vectors: Tensor) -> Tensor:
        return vectors.to(self._device, self._dtype)[:, :, None, None]

    @torch.no_grad()
    def samples(self, count: int, start: int = 0) -> Tensor:
        """Draw images from noise that is the same at every call, leaving no trace in G."""
        vectors = latent(self._seed, -1, torch.arange(start, start + count), self._nz)
        with _untouched_statistics(self.generator.network):
            images: Tensor = self.generator.network(self._as_input(vectors))
        return images.float()


def _cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    return F.binary_cross_entropy_with_logits(logits, targets)


def _figures(losses: tuple[Tensor, Tensor], logits: tuple[Tensor, ...]) -> dict[str, float]:
    # One transfer for all of them: on a GPU each would wait for the queue to drain.
    with torch.no_grad():
        means = [part.sigmoid().mean() for part in logits]
        values = torch.stack([*losses, *means]).tolist()
    return dict(zip(Gan.names, values))


@contextmanager
def _untouched_statistics(network: nn.Module) -> Iterator[None]:
    """Normalise by the batch, as in training, without keeping its statistics."""
    norms = [part for part in network.modules() if isinstance(part, nn.BatchNorm2d)]
    for norm in norms:
        norm.track_running_stats = False
    try:
        yield
    finally:
        for norm in norms:
            norm.track_running_stats = True
