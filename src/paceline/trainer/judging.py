"""Scores the generator's samples at the end of an epoch."""

from __future__ import annotations

import torch

from paceline.trainer.images import Images
from paceline.trainer.program import Program
from paceline.trainer.quality import compare
from paceline.trainer.telling import Teller

_SAMPLES = 512
_AT_ONCE = 64


class Judge:
    """Compares samples with the images that are trained on."""

    def __init__(self, program: Program, images: Images, teller: Teller, *, seed: int) -> None:
        self._program = program
        self._images = images
        self._teller = teller
        self._seed = seed

    def score(self, epoch: int) -> None:
        """Report the distance of the samples from the images, and the floor."""
        real = self._images.some(2 * _SAMPLES, self._seed).cpu()
        drawn = []
        for start in range(0, min(_SAMPLES, len(real) // 2), _AT_ONCE):
            images = self._program.samples(_AT_ONCE, start)
            if images is None:
                return
            drawn.append(images.cpu())
        if not drawn:
            self._teller.note("a single image is too few to score samples by")
            return
        quality = compare(real, torch.cat(drawn)[: len(real) // 2])
        report = self._teller.reporter.metric
        report("swd", quality.distance, epoch=epoch)
        report("swd_floor", quality.floor, epoch=epoch)
        self._teller.line(
            f"Epoch {epoch} samples: distance {quality.distance:.4f} from the real images "
            f"(floor {quality.floor:.4f}, n={quality.images})"
        )
