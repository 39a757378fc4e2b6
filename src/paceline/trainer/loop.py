"""The loop: epochs of steps, with what happens between the steps."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

from paceline.errors import JobFailed
from paceline.trainer.averages import Averages
from paceline.trainer.control import Control
from paceline.trainer.gallery import Gallery
from paceline.trainer.images import Batch, Images
from paceline.trainer.judging import Judge
from paceline.trainer.options import Options
from paceline.trainer.order import Deal
from paceline.trainer.position import Position
from paceline.trainer.program import Program, StepResult
from paceline.trainer.saving import Saver
from paceline.trainer.signals import Mailbox
from paceline.trainer.telling import Step, Teller
from paceline.trainer.wish import Wish
from paceline.trainer.world import World


@dataclass
class Loop:
    """Everything that a training needs, and how far it has come."""

    options: Options
    world: World
    program: Program
    images: Images
    teller: Teller
    control: Control
    mailbox: Mailbox
    gallery: Gallery
    saver: Saver
    position: Position
    judge: Judge | None = None
    _began: float = 0.0
    _steps: int = 0

    def run(self) -> Wish:
        """Train to the end, or until somebody asks for it; return what was asked for."""
        self._began = time.perf_counter()
        while self.position.epoch < self.options.num_epochs:
            wish = self._epoch()
            if wish >= Wish.ENOUGH:
                self.saver.last(self.position, wish)
                return wish
        return Wish.NOTHING

    def _epoch(self) -> Wish:
        start, begin = self.position, time.perf_counter()
        deal = Deal(len(self.images), self.options.batch_size, self.world.size, start.consumed)
        of = start.index + deal.batches
        averages = Averages()
        self.teller.epoch_begins(start.epoch)
        mark = begin
        wish = Wish.NOTHING
        for portion in deal.portions(self.world.rank, seed=self.options.seed, epoch=start.epoch):
            input_begin = time.perf_counter()
            batch = self.images.batch(portion, start.epoch)
            data_s = time.perf_counter() - input_begin
            self.control.ask(self._wish())
            result = self.program.step(batch)
            _require_finite(result, self.options.precision)
            averages.add(result.metrics, batch.size)
            seconds = self.mailbox.step_s = time.perf_counter() - mark
            step = Step(seconds, data_s, result.wait_s, batch.size, result.metrics)
            self.teller.step(self.position, of, step)
            wish = self._after_step(batch)
            if wish >= Wish.ENOUGH and self.position.index < of:
                self.program.finish()
                return wish
            mark = time.perf_counter()
        self.program.finish()
        self.teller.epoch_ends(start.epoch, time.perf_counter() - begin, averages.means())
        self.position = self.position.next_epoch()
        self.saver.after_epoch(self.position)
        if self.judge is not None and self.world.leads:
            self.judge.score(start.epoch)
        return wish

    def _after_step(self, batch: Batch) -> Wish:
        epoch, index = self.position.epoch, self.position.index
        self.position = self.position.next_step(batch.size * self.world.size)
        self._steps += 1
        if self.gallery.due(index):
            self.program.finish()
            self.gallery.take(self.program, batch.images, epoch=epoch, index=index)
        wish = self.control.granted()
        self.saver.after_step(self.position, asked=wish is Wish.CHECKPOINT)
        if self.options.iterations is not None and self._steps >= self.options.iterations:
            return max(wish, Wish.ENOUGH)
        return wish

    def _wish(self) -> Wish:
        seconds = self.options.seconds
        used_up = seconds is not None and time.perf_counter() - self._began >= seconds
        return max(self.mailbox.take(), Wish.ENOUGH if used_up else Wish.NOTHING)


def _require_finite(result: StepResult, precision: str) -> None:
    for name, value in result.metrics.items():
        if not math.isfinite(value):
            hint = "try a smaller --learning_rate"
            if precision != "fp32":
                hint += ", or --precision fp32"
            raise JobFailed(f"the training has diverged: {name} is {value}", hint=hint)
