"""Where a training stands."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Position:
    """Before step `index` of `epoch`; `consumed` images of its order are done, by all ranks."""

    epoch: int = 0
    index: int = 0
    consumed: int = 0
    steps: int = 0

    def next_step(self, images: int) -> Position:
        """Return the position after a step in which all ranks together did `images`."""
        return Position(self.epoch, self.index + 1, self.consumed + images, self.steps + 1)

    def next_epoch(self) -> Position:
        """Return the beginning of the next epoch."""
        return replace(self, epoch=self.epoch + 1, index=0, consumed=0)
