"""What a rank is asked from outside while it trains, and what all ranks agree to do about it.

Ranks that stopped at different steps would wait for each other for ever. So each step carries
every rank's wish to all others, in the background, and all act on it after the same step.
"""

from __future__ import annotations

from typing import Protocol

import torch
import torch.distributed as dist

from paceline.trainer.wish import Wish
from paceline.trainer.world import World


class Control(Protocol):
    """Carries wishes."""

    def ask(self, wish: Wish) -> None:
        """Send this rank's wish; it does not wait."""
        ...

    def granted(self) -> Wish:
        """Return what all ranks do after this step."""
        ...


class AloneControl:
    """One rank needs nobody's consent."""

    def __init__(self) -> None:
        self._wish = Wish.NOTHING

    def ask(self, wish: Wish) -> None:
        """Note the wish."""
        self._wish = wish

    def granted(self) -> Wish:
        """Return the wish."""
        return self._wish


class SharedControl:
    """Carries the greatest wish to all ranks, beside the gradients."""

    def __init__(self) -> None:
        self._box = torch.zeros(1, dtype=torch.int32)
        self._work: dist.Work | None = None

    def ask(self, wish: Wish) -> None:
        """Send this rank's wish; it does not wait."""
        self._box[0] = int(wish)
        self._work = dist.all_reduce(self._box, dist.ReduceOp.MAX, async_op=True)

    def granted(self) -> Wish:
        """Return what all ranks do after this step."""
        if self._work is not None:
            self._work.wait()
        return Wish(int(self._box.item()))


def make_control(world: World) -> Control:
    """Return the control for one rank or many."""
    return SharedControl() if world.connected else AloneControl()
