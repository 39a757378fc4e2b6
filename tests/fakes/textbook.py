"""The programs as textbooks write them: slow, plain, and what the trainer is compared with.

fp32, one backward pass each for D(real), D(fake) and G, torch's own layers, losses, optimisers
and sampler, and one Pillow image per item. Nothing of the trainer is used here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn
from torch.utils.data import DistributedSampler

from paceline.datasets import ImageSet


def generator(nz: int, ngf: int, channels: int) -> nn.Sequential:
    """Return the generator of the public example, for 64x64 images."""
    parts: list[nn.Module] = []
    for wide, narrow, stride, padding in [
        (nz, ngf * 8, 1, 0),
        (ngf * 8, ngf * 4, 2, 1),
        (ngf * 4, ngf * 2, 2, 1),
        (ngf * 2, ngf, 2, 1),
    ]:
        parts.append(nn.ConvTranspose2d(wide, narrow, 4, stride, padding, bias=False))
        parts += [nn.BatchNorm2d(narrow), nn.ReLU()]
    return nn.Sequential(*parts, nn.ConvTranspose2d(ngf, channels, 4, 2, 1, bias=False), nn.Tanh())


def discriminator(ndf: int, channels: int) -> nn.Sequential:
    """Return the discriminator of the public example, for 64x64 images."""
    parts: list[nn.Module] = [nn.Conv2d(channels, ndf, 4, 2, 1, bias=False), nn.LeakyReLU(0.2)]
    for narrow, wide in [(ndf, ndf * 2), (ndf * 2, ndf * 4), (ndf * 4, ndf * 8)]:
        parts.append(nn.Conv2d(narrow, wide, 4, 2, 1, bias=False))
        parts += [nn.BatchNorm2d(wide), nn.LeakyReLU(0.2)]
    return nn.Sequential(*parts, nn.Conv2d(ndf * 8, 1, 4, 1, 0, bias=False), nn.Sigmoid())


def copy_weights(source: nn.Module, target: nn.Module) -> None:
    """Copy parameters in their order; the names may differ, the shapes may not."""
    pairs = zip(source.parameters(), target.parameters(), strict=True)
    with torch.no_grad():
        for theirs, ours in pairs:
            assert theirs.shape == ours.shape
            ours.copy_(theirs)


class TextbookGan:
    """The step that the tutorials show."""

    def __init__(
        self, artist: nn.Module, judge: nn.Module, *, rate: float = 2e-4, beta1: float = 0.5
    ) -> None:
        self.artist, self.judge = artist, judge
        self._adam_g = torch.optim.Adam(artist.parameters(), lr=rate, betas=(beta1, 0.999))
        self._adam_d = torch.optim.Adam(judge.parameters(), lr=rate, betas=(beta1, 0.999))
        self._loss = nn.BCELoss()

    def step(self, real: Tensor, noise: Tensor) -> tuple[float, float]:
        """Update D on a real and a fake batch, then G; return both losses."""
        ones, zeros = torch.ones(len(real)), torch.zeros(len(real))
        self._adam_d.zero_grad()
        loss_real = self._loss(self.judge(real).view(-1), ones)
        loss_real.backward()
        fake = self.artist(noise)
        loss_fake = self._loss(self.judge(fake.detach()).view(-1), zeros)
        loss_fake.backward()
        self._adam_d.step()
        self._adam_g.zero_grad()
        loss_artist = self._loss(self.judge(fake).view(-1), ones)
        loss_artist.backward()
        self._adam_g.step()
        return loss_real.item() + loss_fake.item(), loss_artist.item()


class TextbookClassifier:
    """Softmax regression by plain descent."""

    def __init__(self, features: int, classes: int, *, rate: float) -> None:
        self.network = nn.Linear(features, classes)
        self._descent = torch.optim.SGD(self.network.parameters(), lr=rate)
        self._loss = nn.CrossEntropyLoss()

    def step(self, images: Tensor, labels: Tensor) -> float:
        """Learn from a batch; return the loss before it."""
        self._descent.zero_grad()
        loss = self._loss(self.network(images.flatten(1)), labels)
        loss.backward()
        self._descent.step()
        return float(loss.item())


class Items:
    """Images one at a time: read from the prepared file, resized by Pillow, scaled to [-1, 1]."""

    def __init__(self, source: ImageSet, size: int) -> None:
        self._source, self._size = source, size
        raw = np.frombuffer(source.path.read_bytes(), np.uint8)
        self._pixels = raw.reshape(source.count, source.channels, source.height, source.width)
        self._labels = np.zeros(source.count, np.int64)
        if source.labels_path is not None:
            self._labels = np.frombuffer(source.labels_path.read_bytes(), "<i4").astype(np.int64)

    def __len__(self) -> int:
        return self._source.count

    def __getitem__(self, index: int) -> Tensor:
        planes = [Image.fromarray(np.ascontiguousarray(plane)) for plane in self._pixels[index]]
        side = (self._size, self._size)
        resized = [np.asarray(plane.resize(side, Image.Resampling.BILINEAR)) for plane in planes]
        return torch.from_numpy(np.stack(resized)).float().div(255).sub(0.5).div(0.5)

    def images(self, indices: Sequence[int]) -> Tensor:
        """Return some images as a batch."""
        return torch.stack([self[index] for index in indices])

    def labels(self, indices: Sequence[int]) -> Tensor:
        """Return the labels of some images."""
        return torch.from_numpy(self._labels[list(indices)])


class _Countable:
    def __init__(self, count: int) -> None:
        self._count = count

    def __len__(self) -> int:
        return self._count


def batches(
    count: int, batch_size: int, epoch: int, *, rank: int = 0, ranks: int = 1, seed: int = 0
) -> Iterator[list[int]]:
    """Yield the indices of one rank's batches, as torch's DistributedSampler deals them."""
    sampler: DistributedSampler[int] = DistributedSampler(
        _Countable(count),  # type: ignore[arg-type]
        num_replicas=ranks,
        rank=rank,
        shuffle=True,
        seed=seed,
    )
    sampler.set_epoch(epoch)
    order = list(sampler)
    for start in range(0, len(order), batch_size):
        yield order[start : start + batch_size]
