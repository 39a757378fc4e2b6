"""From options to a training that can run: device, precision, data, program, what is said."""

from __future__ import annotations

import platform
from dataclasses import dataclass

import torch

from paceline.datasets import ImageSet, prepare
from paceline.errors import DataError
from paceline.events import Scalar
from paceline.trainer.device import (
    DeviceChoice,
    choose_device,
    tune_gpu,
    visible_accelerators,
)
from paceline.trainer.images import Images
from paceline.trainer.options import Options
from paceline.trainer.precision import (
    BF16,
    FP32,
    PrecisionChoice,
    agreed,
    choose_precision,
    look_at_hardware,
)
from paceline.trainer.program import Program
from paceline.trainer.programs import PREFERS_FP32, Setting, build_program
from paceline.trainer.progress import PreparationBar
from paceline.trainer.world import World


@dataclass(frozen=True)
class Ready:
    """A training that can start, what describes it, and what should be said about it."""

    program: Program
    images: Images
    setting: Setting
    info: dict[str, Scalar]
    notes: tuple[str, ...] = ()


def make_ready(options: Options, world: World, said: tuple[str, ...] = ()) -> Ready:
    """Choose, load and build; `said` is what there was to say before."""
    notes = list(said)
    device = _settle_device(options, world, notes)
    precision = _settle_precision(options, world, device, notes)
    wire = choose_wire(options.wire, precision.name, world)
    data = _settle_data(options, world)
    setting = Setting(world, device, precision.dtype, wire or "fp32", options.sync_batchnorm)
    images = Images(data, size=options.image_size, dtype=precision.dtype, device=device)
    program = build_program(options, data, setting)
    info = describe(options, setting, precision, data)
    return Ready(program, images, setting, info, tuple(notes))


def choose_wire(asked: str, precision: str, world: World) -> str | None:
    """Return how gradients travel: as they are computed, unless something else is asked for."""
    if not world.connected:
        return None
    if asked != "auto":
        return asked
    return "bf16" if precision == BF16 else "fp32"


def describe(
    options: Options, setting: Setting, precision: PrecisionChoice, data: ImageSet
) -> dict[str, Scalar]:
    """Return the surroundings of this rank, for the start event."""
    world, device = setting.world, setting.device
    alone = not world.connected
    return {
        "program": options.program,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "device": device.type if device.type == "cpu" else torch.cuda.get_device_name(device),
        "threads": torch.get_num_threads(),
        "precision": precision.name,
        "wire": None if alone else setting.wire,
        "backend": None if alone else ("nccl" if device.type == "cuda" else "gloo"),
        "batch_size": options.batch_size,
        "seed": options.seed,
        "dataset": data.name,
        "split": data.split,
        "images": data.count,
        "source": data.source,
        "digest": data.digest or None,
        "sync_batchnorm": options.sync_batchnorm,
    }


def _settle_device(options: Options, world: World, notes: list[str]) -> torch.device:
    choice = choose_device(
        options.device,
        local_rank=world.place.local_rank,
        local_world_size=world.place.local_world_size,
        found=visible_accelerators(),
    )
    if choice.is_cuda and world.largest(0) > 0:
        choice = DeviceChoice("cpu", "another rank has no GPU: training on the CPU")
    elif not choice.is_cuda:
        world.largest(1)
    if choice.note:
        notes.append(choice.note)
    device = torch.device(choice.name)
    if choice.is_cuda:
        torch.cuda.set_device(device)
    return device


def _settle_precision(
    options: Options, world: World, device: torch.device, notes: list[str]
) -> PrecisionChoice:
    asked = options.precision
    if asked == "auto" and options.program in PREFERS_FP32:
        choice = PrecisionChoice("fp32", "precision fp32: the network is too small to gain")
    else:
        choice = choose_precision(asked, look_at_hardware(device))
    choice = agreed(choice, world)
    if device.type == "cuda":
        tune_gpu(exact=choice.name == FP32)
    notes.append(choice.reason)
    return choice


def _settle_data(options: Options, world: World) -> ImageSet:
    generated = options.dataset == "fake"
    data = prepare(
        options.dataset,
        options.dataroot,
        split=options.split,
        # Generated images are as large as CIFAR-10's, or MNIST's, and take the same way in.
        image_size=min(options.image_size, 32) if generated else options.image_size,
        channels=1 if generated and options.program == "mlp" else None,
        download=options.download,
        count=options.count,
        progress=PreparationBar() if world.place.local_rank == 0 else None,
    )
    fingerprint = int(data.digest[:15] or "0", 16) + data.count
    if world.largest(fingerprint) != -world.largest(-fingerprint):
        raise DataError(
            f"{data.name} is not the same on all hosts (here: {data.count} images, {data.source})",
            hint="fetch it anew on each host, or copy it from one to the others",
        )
    return data
