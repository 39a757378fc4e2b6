"""A training with everything around it: signals, background writing, resuming, the loop."""

from __future__ import annotations

from contextlib import ExitStack, closing
from dataclasses import dataclass

from paceline.errors import StorageError
from paceline.events import Reporter
from paceline.trainer.checkpoint import Folder
from paceline.trainer.control import make_control
from paceline.trainer.gallery import Gallery
from paceline.trainer.judging import Judge
from paceline.trainer.loop import Loop
from paceline.trainer.options import Options
from paceline.trainer.resuming import describe, resume
from paceline.trainer.saving import Saver, choose_schedule
from paceline.trainer.scribe import Scribe
from paceline.trainer.setup import Ready
from paceline.trainer.signals import Mailbox, listening
from paceline.trainer.telling import Teller
from paceline.trainer.wish import Wish
from paceline.trainer.world import World

_CHECKPOINTS = "checkpoints"


def train(
    options: Options, world: World, ready: Ready, reporter: Reporter, mailbox: Mailbox
) -> bool:
    """Run the training; return whether it was stopped from outside."""
    teller = Teller(reporter, ready.program, rank=world.rank, epochs=options.num_epochs)
    teller.line(f"Dataset {ready.images.source.name} loaded")
    teller.line(f"Rank: {world.rank}. World Size: {world.size}")
    for note in ready.notes:
        teller.note(note)
    _make_folder(options)
    with ExitStack() as stack:
        stack.enter_context(listening(mailbox, lambda: reporter.end("stopped")))
        scribe = Scribe(lambda words: teller.note(words, level="warning"))
        stack.enter_context(closing(scribe))
        around = _Around(world, teller, mailbox, scribe)
        wish = _loop(options, ready, around).run()
    return wish is Wish.STOP


@dataclass(frozen=True)
class _Around:
    """What surrounds a training."""

    world: World
    teller: Teller
    mailbox: Mailbox
    scribe: Scribe


def _loop(options: Options, ready: Ready, around: _Around) -> Loop:
    program, images = ready.program, ready.images
    world, teller, scribe = around.world, around.teller, around.scribe
    folder = Folder(options.out_folder / _CHECKPOINTS)
    description = describe(options, images.channels, len(images))
    position = resume(
        options,
        world=world,
        folder=folder,
        program=program,
        description=description,
        teller=teller,
    )
    saver = Saver(
        schedule=choose_schedule(options),
        folder=folder,
        keep=options.keep_checkpoints,
        world=world,
        program=program,
        description=description,
        scribe=scribe,
        teller=teller,
    )
    gallery = Gallery(
        options.out_folder,
        rank=world.rank,
        every=options.pictures_every,
        scribe=scribe,
        reporter=teller.reporter,
    )
    judge = Judge(program, images, teller, seed=options.seed) if options.quality else None
    return Loop(
        options=options,
        world=world,
        program=program,
        images=images,
        teller=teller,
        control=make_control(world),
        mailbox=around.mailbox,
        gallery=gallery,
        saver=saver,
        position=position,
        judge=judge,
    )


def _make_folder(options: Options) -> None:
    try:
        options.out_folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(
            f"{options.out_folder} cannot be made: {error}", hint="choose another --out_folder"
        ) from error
