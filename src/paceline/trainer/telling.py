"""What a rank says while it trains: lines for people, events for Paceline."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass

from paceline.events import Reporter
from paceline.trainer.position import Position
from paceline.trainer.program import Program


@dataclass(frozen=True)
class Step:
    """What there is to say of one step."""

    seconds: float
    data_s: float
    wait_s: float | None
    items: int
    metrics: Mapping[str, float]


class Teller:
    """Says everything twice: as the public program prints it, and as an event."""

    def __init__(self, reporter: Reporter, program: Program, *, rank: int, epochs: int) -> None:
        self.reporter = reporter
        self._words = program.line
        self._line_every = program.line_every
        self._rank = rank
        self._epochs = epochs

    def line(self, text: str) -> None:
        """Print a line at once: a reader at the other end of a pipe follows it."""
        sys.stdout.write(text + "\n")
        sys.stdout.flush()

    def note(self, text: str, *, level: str = "info") -> None:
        """Say something about the run; only rank 0 bothers people with it."""
        self.reporter.note(text, level=level)
        if self._rank == 0 or level != "info":
            sys.stderr.write(f"paceline: {text}\n")
            sys.stderr.flush()

    def epoch_begins(self, epoch: int) -> None:
        """Say that an epoch begins."""
        self.reporter.begin_epoch()
        self.line(f"Rank: {self._rank}, Epoch: {epoch}, Training ...")

    def step(self, at: Position, of: int, step: Step) -> None:
        """Report a step, and print its line if it is due."""
        self.reporter.iteration(
            at.epoch,
            at.index,
            of=of,
            seconds=step.seconds,
            items=step.items,
            data_s=step.data_s,
            wait_s=step.wait_s,
            metrics=step.metrics,
        )
        if at.index % self._line_every == 0:
            self.line(
                f"[epoch: {at.epoch}/{self._epochs}][iteration: {at.index}/{of}]"
                f"[rank: {self._rank}] {self._words(step.metrics)}, "
                f"iteration time: {step.seconds:.4f}s"
            )

    def epoch_ends(self, epoch: int, seconds: float, metrics: Mapping[str, float]) -> None:
        """Say that an epoch is done."""
        self.reporter.epoch(epoch, seconds=seconds, metrics=metrics)
        self.line(f"[rank: {self._rank}] Epoch {epoch} took: {seconds:.4f} seconds")
