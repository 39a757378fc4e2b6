"""The textbook DistributedDataParallel DCGAN: what people run today, for comparison only.

fp32, one PIL image per item resized in loader workers, DDP with its defaults, and the
discriminator's gradients reduced three times per step (real, fake, and the generator's pass
through it). It reports through the same events as our trainer, so both are timed alike.

RANK=0 WORLD_SIZE=1 … python benchmarks/textbook_dcgan.py --batch_size 16 --iterations 20
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from PIL import Image
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler

from paceline.datasets import ImageSet, prepare
from paceline.events import Place, Reporter

NZ, NGF, NDF, SIZE = 100, 64, 64, 64


class PilImages(Dataset[tuple[Tensor, int]]):
    """Every item is a PIL image that is resized, cropped and normalised when it is asked for."""

    def __init__(self, images: ImageSet) -> None:
        self._images = images
        self._bytes = torch.from_file(
            str(images.path), shared=True, size=images.size_bytes, dtype=torch.uint8
        )

    def __len__(self) -> int:
        return self._images.count

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        shape = (self._images.channels, self._images.height, self._images.width)
        start = index * self._images.image_bytes
        pixels = self._bytes[start : start + self._images.image_bytes].view(shape)
        picture = Image.fromarray(pixels.permute(1, 2, 0).numpy())
        resized = picture.resize((SIZE, SIZE), Image.Resampling.BILINEAR)
        data = torch.from_numpy(np.array(resized))
        chw = data.permute(2, 0, 1).contiguous().float().div(255)
        return chw.sub(0.5).div(0.5), 0


def generator() -> nn.Module:
    """Return the generator of the DCGAN paper for 64x64 images."""
    layers: list[nn.Module] = []
    sizes = [(NZ, NGF * 8, 1, 0), (NGF * 8, NGF * 4, 2, 1), (NGF * 4, NGF * 2, 2, 1)]
    for wide, narrow, stride, padding in [*sizes, (NGF * 2, NGF, 2, 1)]:
        layers += [
            nn.ConvTranspose2d(wide, narrow, 4, stride, padding, bias=False),
            nn.BatchNorm2d(narrow),
            nn.ReLU(inplace=True),
        ]
    return nn.Sequential(*layers, nn.ConvTranspose2d(NGF, 3, 4, 2, 1, bias=False), nn.Tanh())


def discriminator() -> nn.Module:
    """Return the discriminator of the DCGAN paper for 64x64 images."""
    first = nn.Conv2d(3, NDF, 4, 2, 1, bias=False)
    layers: list[nn.Module] = [first, nn.LeakyReLU(0.2, inplace=True)]
    for narrow, wide in [(NDF, NDF * 2), (NDF * 2, NDF * 4), (NDF * 4, NDF * 8)]:
        layers += [
            nn.Conv2d(narrow, wide, 4, 2, 1, bias=False),
            nn.BatchNorm2d(wide),
            nn.LeakyReLU(0.2, inplace=True),
        ]
    return nn.Sequential(*layers, nn.Conv2d(NDF * 8, 1, 4, 1, 0, bias=False), nn.Sigmoid())


def initialise(module: nn.Module) -> None:
    """Draw the weights as the paper does."""
    if isinstance(module, (nn.Conv2d, nn.ConvTranspose2d)):
        nn.init.normal_(module.weight, 0.0, 0.02)
    elif isinstance(module, nn.BatchNorm2d):
        nn.init.normal_(module.weight, 1.0, 0.02)
        nn.init.zeros_(module.bias)


def distributed(model: nn.Module, place: Place) -> nn.Module:
    """Wrap a model with DDP's defaults, where there is more than one rank."""
    model.apply(initialise)
    return DistributedDataParallel(model) if place.world_size > 1 else model


class Textbook:
    """Models, optimisers and the step that the tutorials show."""

    def __init__(self, place: Place) -> None:
        self.g = distributed(generator(), place)
        self.d = distributed(discriminator(), place)
        self.opt_g = torch.optim.Adam(self.g.parameters(), lr=2e-4, betas=(0.5, 0.999))
        self.opt_d = torch.optim.Adam(self.d.parameters(), lr=2e-4, betas=(0.5, 0.999))
        self.loss = nn.BCELoss()

    def step(self, real: Tensor) -> tuple[float, float]:
        """Update D on real and fake images and then G; D's gradients are reduced thrice."""
        count = real.size(0)
        ones, zeros = torch.ones(count), torch.zeros(count)
        self.opt_d.zero_grad()
        loss_real = self.loss(self.d(real).view(-1), ones)
        loss_real.backward()
        fake = self.g(torch.randn(count, NZ, 1, 1))
        loss_fake = self.loss(self.d(fake.detach()).view(-1), zeros)
        loss_fake.backward()
        self.opt_d.step()
        self.opt_g.zero_grad()
        loss_g = self.loss(self.d(fake).view(-1), ones)
        loss_g.backward()
        self.opt_g.step()
        return loss_real.item() + loss_fake.item(), loss_g.item()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--dataset", default="fake")
    parser.add_argument("--dataroot", type=Path, default=None)
    parser.add_argument("--batch_size", type=int, default=16)
    parser.add_argument("--iterations", type=int, default=20)
    parser.add_argument("--max_workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--bare", action="store_true", help="one batch again and again")
    options = parser.parse_args()

    place = Place.from_environment()
    torch.manual_seed(options.seed)
    if place.world_size > 1:
        dist.init_process_group("gloo")
    data = PilImages(prepare(options.dataset, options.dataroot))
    sampler: DistributedSampler[tuple[Tensor, int]] = DistributedSampler(
        data, num_replicas=place.world_size, rank=place.rank, shuffle=True
    )
    workers = 0 if options.bare else options.max_workers
    loader = DataLoader(data, options.batch_size, sampler=sampler, num_workers=workers)
    textbook = Textbook(place)
    with Reporter(place=place) as reporter:
        batches = iter(loader)
        real, _ = next(batches)
        for index in range(options.iterations):
            begun = time.perf_counter()
            if index and not options.bare:
                real, _ = next(batches)
            loss_d, loss_g = textbook.step(real)
            reporter.iteration(
                0,
                index,
                seconds=time.perf_counter() - begun,
                items=real.size(0),
                metrics={"loss_d": loss_d, "loss_g": loss_g},
            )
    if place.world_size > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
