"""Pictures of what the generator sees and makes, every so many steps."""

from __future__ import annotations

from pathlib import Path

from torch import Tensor

from paceline.events import Reporter
from paceline.trainer import pictures
from paceline.trainer.program import Program
from paceline.trainer.scribe import Scribe, write_whole


class Gallery:
    """Writes sample sheets in the background; `every` 0 writes none."""

    def __init__(
        self, folder: Path, *, rank: int, every: int, scribe: Scribe, reporter: Reporter
    ) -> None:
        self._folder = folder
        self._rank = rank
        self._every = every
        self._scribe = scribe
        self._reporter = reporter

    def due(self, index: int) -> bool:
        """Whether pictures are taken after this step of an epoch."""
        return self._every > 0 and index % self._every == 0

    def take(self, program: Program, images: Tensor, *, epoch: int, index: int) -> None:
        """Draw samples now, and write them and the real images soon."""
        samples = program.samples(min(len(images), pictures.MOST))
        if samples is None:
            return
        for what, content in (("real", images), ("fake", samples)):
            name = f"{what}_samples_rank_{self._rank}_epoch_{epoch}_iter_{index}.png"
            self._write(self._folder / name, what, pictures.sheet(content), epoch, index)

    def _write(self, path: Path, what: str, canvas: Tensor, epoch: int, index: int) -> None:
        def task() -> None:
            write_whole(path, pictures.encoded(canvas))
            self._reporter.picture(str(path), what=what, epoch=epoch, index=index)

        self._scribe.do(task)
