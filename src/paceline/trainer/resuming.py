"""Going on from a checkpoint: rank 0 reads it, all ranks become what it holds."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from paceline.errors import DataError, UsageError
from paceline.trainer import checkpoint
from paceline.trainer.checkpoint import Folder, Found
from paceline.trainer.options import Options
from paceline.trainer.pictures import raw_bytes
from paceline.trainer.position import Position
from paceline.trainer.program import Program
from paceline.trainer.saving import FORMAT
from paceline.trainer.telling import Teller
from paceline.trainer.world import RESTARTS, World


def choose_resume(asked: str | None, environ: Mapping[str, str]) -> str:
    """Return `auto`, `never` or a path. A rank that its launcher starts again goes on."""
    if asked is not None:
        return asked
    return "auto" if environ.get(RESTARTS, "0") not in ("", "0") else "never"


def describe(options: Options, channels: int, images: int) -> dict[str, Any]:
    """Return what a checkpoint says of the training it belongs to."""
    networks = ("image_size", "nz", "ngf", "ndf") if options.program == "dcgan" else ("image_size",)
    return {
        "program": options.program,
        "networks": {"channels": channels, **{name: getattr(options, name) for name in networks}},
        "images": images,
        "seed": options.seed,
    }


def resume(
    options: Options,
    *,
    world: World,
    folder: Folder,
    program: Program,
    description: Mapping[str, Any],
    teller: Teller,
) -> Position:
    """Go on from the checkpoint that is asked for, if there is one; return where to begin."""
    how = choose_resume(options.resume, os.environ)
    if how == "never":
        if world.leads and options.checkpoint_every != 0:
            _begin_quietly(folder, teller)
        return Position()
    found = _find(how, folder) if world.leads else None
    data = _shared(world, found.data if found else b"")
    if not data:
        teller.note("no checkpoint to go on from: training from the beginning")
        return Position()
    for problem in found.passed_over if found else ():
        teller.note(f"{problem}; going on from the one before it", level="warning")
    state = checkpoint.load(data)
    require_match(state, description)
    for name, learner in program.learners.items():
        learner.restore(state["learners"][name])
    position = _position(state, description, teller)
    where = f"epoch {position.epoch}, iteration {position.index}"
    teller.note(f"going on from {found.path if found else 'the checkpoint of rank 0'}: {where}")
    return position


def require_match(state: Mapping[str, Any], description: Mapping[str, Any]) -> None:
    """Raise UsageError unless the checkpoint fits the training that was asked for."""
    if state.get("format") != FORMAT:
        raise DataError("the checkpoint was written by another version of the trainer")
    for name in ("program", "networks"):
        if state[name] != description[name]:
            raise UsageError(
                f"the checkpoint is of another training: {name} is {state[name]}, "
                f"not {description[name]}",
                hint="use the same arguments, or --resume never to begin anew",
            )


def _position(state: Mapping[str, Any], description: Mapping[str, Any], teller: Teller) -> Position:
    position = Position(**state["position"])
    same_order = all(state[name] == description[name] for name in ("images", "seed"))
    if position.index and not same_order:
        teller.note("the images or the seed are others: the epoch is begun anew", level="warning")
        return Position(position.epoch, 0, 0, position.steps)
    return position


def _begin_quietly(folder: Folder, teller: Teller) -> None:
    try:
        folder.begin()
    except OSError as error:
        teller.note(f"checkpoints cannot be written to {folder.path}: {error}", level="warning")


def _find(how: str, folder: Folder) -> Found | None:
    if how == "auto":
        return folder.newest()
    path = Path(how)
    if path.is_dir():
        return Folder(path).newest()
    return Found(path, checkpoint.read_whole(path))


def _shared(world: World, data: bytes) -> bytes:
    """Return rank 0's bytes on every rank."""
    if not world.connected:
        return data
    size = torch.tensor([len(data)])
    world.broadcast(size)
    if not int(size.item()):
        return b""
    box = torch.empty(int(size.item()), dtype=torch.uint8)
    if world.leads:
        ctypes.memmove(box.data_ptr(), data, len(data))
    world.broadcast(box)
    return raw_bytes(box)
