"""The MLP program: a one-layer classifier, trained by plain stochastic gradient descent."""

from __future__ import annotations

from collections.abc import Mapping

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from paceline.trainer.images import Batch
from paceline.trainer.learner import Learner
from paceline.trainer.program import StepResult


class Classifying:
    """Trains one network on labelled images."""

    names = ("loss", "accuracy")
    line_every = 100

    def __init__(self, network: Learner) -> None:
        self.network = network

    @property
    def learners(self) -> dict[str, Learner]:
        """The network by name."""
        return {"classifier": self.network}

    def step(self, batch: Batch) -> StepResult:
        """Learn from a batch."""
        if batch.labels is None:
            raise ValueError("the images have no labels")
        self.network.begin()
        self.network.last_pass()
        scores = self.network.network(batch.images).float()
        loss = F.cross_entropy(scores, batch.labels)
        loss.backward()
        waited_s = self.network.update()
        with torch.no_grad():
            right = (scores.argmax(1) == batch.labels).float().mean()
            values = torch.stack([loss, right]).tolist()
        return StepResult(dict(zip(self.names, values)), waited_s)

    def finish(self) -> float:
        """Do nothing: each step is complete."""
        return 0.0

    def samples(self, count: int, start: int = 0) -> Tensor | None:
        """Return nothing: a classifier makes no images."""
        del count, start
        return None

    def line(self, metrics: Mapping[str, float]) -> str:
        """Return the figures as words."""
        return f"Loss: {metrics['loss']:.4f}, accuracy: {metrics['accuracy']:.4f}"
