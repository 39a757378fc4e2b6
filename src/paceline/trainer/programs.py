"""The built-in programs: from options to something that can be trained."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import torch

from paceline.datasets import ImageSet
from paceline.errors import DataError
from paceline.trainer.classifying import Classifying
from paceline.trainer.gan import Gan
from paceline.trainer.layers import cpu_layers, torch_layers
from paceline.trainer.learner import Learner
from paceline.trainer.models import classifier, discriminator, generator, initialise
from paceline.trainer.norms import SharedNorm
from paceline.trainer.optimisers import Adam, Descent, Optimiser
from paceline.trainer.options import Options
from paceline.trainer.program import Program
from paceline.trainer.weights import Weights
from paceline.trainer.wire import make_wire
from paceline.trainer.world import World


@dataclass(frozen=True)
class Setting:
    """Where and in which formats a program computes."""

    world: World
    device: torch.device
    dtype: torch.dtype
    wire: str
    sync_batchnorm: bool = False


def build_program(options: Options, data: ImageSet, setting: Setting) -> Program:
    """Make the program that the options name."""
    return PROGRAMS[options.program](options, data, setting)


def _dcgan(options: Options, data: ImageSet, setting: Setting) -> Program:
    layers = torch_layers() if setting.device.type == "cuda" else cpu_layers()
    if setting.sync_batchnorm:
        layers = replace(layers, norm=SharedNorm)
    # The same seed on every rank: all begin with the same weights.
    seeded = torch.Generator().manual_seed(options.seed)
    artist = generator(
        layers,
        nz=options.nz,
        width=options.ngf,
        channels=data.channels,
        image_size=options.image_size,
    )
    judge = discriminator(
        layers, width=options.ndf, channels=data.channels, image_size=options.image_size
    )
    initialise(artist, seeded)
    initialise(judge, seeded)

    def adam(weights: Weights) -> Optimiser:
        return Adam(weights, rate=options.learning_rate, beta1=options.beta1)

    return Gan(
        _learner(artist, setting, adam),
        _learner(judge, setting, adam),
        nz=options.nz,
        seed=options.seed,
        dtype=setting.dtype,
        device=setting.device,
    )


def _mlp(options: Options, data: ImageSet, setting: Setting) -> Program:
    if data.labels_path is None:
        raise DataError(
            f"{data.name} has no labels to learn", hint="use mnist, fashion-mnist or cifar10"
        )
    torch.manual_seed(options.seed)
    features = data.channels * options.image_size**2
    network = classifier(features, max(len(data.classes), 2))

    def descent(weights: Weights) -> Optimiser:
        return Descent(weights, rate=options.learning_rate)

    return Classifying(_learner(network, setting, descent))


def _learner(
    network: torch.nn.Module, setting: Setting, optimiser: Callable[[Weights], Optimiser]
) -> Learner:
    world = setting.world
    wire = make_wire(setting.wire, world.size) if world.connected else None
    return Learner(
        network,
        dtype=setting.dtype,
        device=setting.device,
        world=world,
        wire=wire,
        optimiser=optimiser,
    )


# Programs whose work is too small for a lower precision to pay.
PREFERS_FP32 = ("mlp",)

PROGRAMS: Mapping[str, Callable[[Options, ImageSet, Setting], Program]] = {
    "dcgan": _dcgan,
    "mlp": _mlp,
}
