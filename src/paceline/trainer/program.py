"""What the loop knows of a program: steps, figures, learners, samples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from paceline.trainer.images import Batch
from paceline.trainer.learner import Learner


@dataclass(frozen=True)
class StepResult:
    """What one step tells: figures by name, and how long it waited for other ranks."""

    metrics: dict[str, float]
    wait_s: float | None


class Program(Protocol):
    """A training that the loop can run."""

    @property
    def learners(self) -> Mapping[str, Learner]:
        """The networks by name."""
        ...

    def step(self, batch: Batch) -> StepResult:
        """Learn from a batch. An update may be left due, for `finish` or the next step."""
        ...

    def finish(self) -> float:
        """Take the update that is due, if one is; return the seconds waited for other ranks."""
        ...

    def samples(self, count: int, start: int = 0) -> Tensor | None:
        """Return generated images in [-1, 1], from the `start`-th of an endless row of them.

        None where the program makes none.
        """
        ...

    def line(self, metrics: Mapping[str, float]) -> str:
        """Return the figures of a step as the words of an output line."""
        ...

    @property
    def line_every(self) -> int:
        """After how many steps a line is printed."""
        ...
