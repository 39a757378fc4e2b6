"""When checkpoints are taken, and by whom."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from torch import Tensor

from paceline.trainer.checkpoint import Folder
from paceline.trainer.learner import WIRE
from paceline.trainer.options import Options
from paceline.trainer.position import Position
from paceline.trainer.program import Program
from paceline.trainer.scribe import Scribe
from paceline.trainer.telling import Teller
from paceline.trainer.wish import Wish
from paceline.trainer.world import World

FORMAT = 1


@dataclass(frozen=True)
class Schedule:
    """When checkpoints are due without being asked for."""

    every: int = 0
    at_epoch_ends: bool = False

    @property
    def on(self) -> bool:
        """Whether the training keeps checkpoints at all."""
        return self.every > 0 or self.at_epoch_ends


def choose_schedule(options: Options) -> Schedule:
    """Return what was asked for; else epoch ends, unless a few steps are only to be measured."""
    if options.checkpoint_every is not None:
        return Schedule(options.checkpoint_every, options.checkpoint_every > 0)
    measuring = options.iterations is not None or options.seconds is not None
    return Schedule(0, not measuring)


class Saver:
    """Takes checkpoints. Rank 0 writes, in the background; the others only keep in step."""

    def __init__(
        self,
        *,
        schedule: Schedule,
        folder: Folder,
        keep: int,
        world: World,
        program: Program,
        description: Mapping[str, Any],
        scribe: Scribe,
        teller: Teller,
    ) -> None:
        self._schedule = schedule
        self._folder = folder
        self._keep = keep
        self._leads = world.leads
        self._program = program
        self._description = description
        self._scribe = scribe
        self._teller = teller
        self._busy = False
        self._last: Position | None = None

    def after_step(self, position: Position, *, asked: bool) -> None:
        """Save if a checkpoint is due or asked for."""
        every = self._schedule.every
        if asked or (every and position.steps % every == 0):
            self._save(position, must=asked)

    def after_epoch(self, position: Position) -> None:
        """Save if epoch ends are kept."""
        if self._schedule.at_epoch_ends:
            self._save(position, must=True)

    def last(self, position: Position, wish: Wish) -> None:
        """Save before leaving early, where checkpoints are kept."""
        if self._schedule.on and wish >= Wish.ENOUGH:
            self._save(position, must=True)

    def _save(self, position: Position, *, must: bool) -> None:
        # On every rank, so that all take the update that is due at the same moment.
        self._program.finish()
        learners = self._program.learners
        kept = {name: learner.kept_on_wires() for name, learner in learners.items()}
        if not self._leads or position == self._last:
            return
        if self._busy and not must:
            self._teller.note(
                "a checkpoint was left out: the one before it is still being written",
                level="warning",
            )
            return
        self._busy, self._last = True, position
        state = self._state(position, kept)
        self._scribe.do(lambda: self._write(state, position))

    def _state(self, position: Position, kept: Mapping[str, Tensor | None]) -> dict[str, Any]:
        learners: dict[str, Any] = {}
        for name, learner in self._program.learners.items():
            rows = kept[name]
            learners[name] = learner.snapshot() | ({} if rows is None else {WIRE: {"": rows}})
        return {
            "format": FORMAT,
            **self._description,
            "position": asdict(position),
            "learners": learners,
        }

    def _write(self, state: Mapping[str, Any], position: Position) -> None:
        begin = time.perf_counter()
        try:
            path, size_bytes = self._folder.write(state, self._keep)
        except OSError as error:
            self._teller.note(
                f"a checkpoint could not be written ({error}); the one before it is kept",
                level="warning",
            )
            return
        finally:
            self._busy = False
        self._teller.reporter.checkpoint(
            str(path),
            epoch=position.epoch,
            index=position.index,
            seconds=time.perf_counter() - begin,
            size_bytes=size_bytes,
        )
