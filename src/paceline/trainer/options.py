"""The flags of the trainer: those of the well-known public DCGAN program, and our own."""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from paceline.errors import UsageError

OUT_VARIABLE = "PACELINE_OUT"
PRECISIONS = ("auto", "fp32", "bf16")
WIRES = ("auto", "fp32", "bf16", "int8")
DEVICES = ("auto", "cpu", "cuda")

# Other spellings that people use for the same flag.
_ALIASES = {
    "--epochs": "--num_epochs",
    "--lr": "--learning_rate",
    "--data_root": "--dataroot",
    "--out": "--out_folder",
    "--workers": "--max_workers",
}


@dataclass(frozen=True)
class ProgramDefaults:
    """What a program uses where the command line says nothing."""

    dataset: str
    num_epochs: int
    batch_size: int
    learning_rate: float
    image_size: int


DEFAULTS: Mapping[str, ProgramDefaults] = {
    "dcgan": ProgramDefaults("cifar10", 25, 32, 0.0002, 64),
    "mlp": ProgramDefaults("mnist", 5, 16, 0.01, 28),
}


@dataclass(frozen=True)
class Options:
    """What one rank was asked to do; the same on every rank but for `local_rank`."""

    program: str = "dcgan"
    dataset: str = "cifar10"
    dataroot: Path | None = None
    download: bool = False
    test_data: bool = False
    count: int | None = None
    num_epochs: int = 25
    batch_size: int = 32
    learning_rate: float = 0.0002
    image_size: int = 64
    seed: int = 0
    beta1: float = 0.5
    nz: int = 100
    ngf: int = 64
    ndf: int = 64
    device: str = "auto"
    precision: str = "auto"
    wire: str = "auto"
    sync_batchnorm: bool = False
    iterations: int | None = None
    seconds: float | None = None
    out_folder: Path = Path()
    pictures_every: int = 100
    quality: bool = False
    checkpoint_every: int | None = None
    keep_checkpoints: int = 3
    resume: str | None = None
    max_workers: int = 0
    local_rank: int | None = None
    timeout_s: float = 600.0

    @property
    def split(self) -> str:
        """Which part of the data set is trained on."""
        return "test" if self.test_data else "train"


def parse(argv: Sequence[str], environ: Mapping[str, str] | None = None) -> Options:
    """Return the options that a command line asks for; UsageError says what does not fit."""
    env = os.environ if environ is None else environ
    given = vars(_parser().parse_args(normalised(argv)))
    if given.pop("cuda"):
        given["device"] = "cuda"
    defaults = DEFAULTS[given["program"]]
    for item in fields(ProgramDefaults):
        if given[item.name] is None:
            given[item.name] = getattr(defaults, item.name)
    if given["out_folder"] is None:
        given["out_folder"] = Path(env.get(OUT_VARIABLE) or ".")
    options = Options(**given)
    _check(options)
    return options


def normalised(argv: Sequence[str]) -> list[str]:
    """Return the words with one spelling per flag: `--batch-size=8` is `--batch_size=8`."""
    words = []
    for word in argv:
        flag, equals, value = word.partition("=")
        if flag.startswith("--"):
            flag = "--" + flag[2:].replace("-", "_")
            flag = _ALIASES.get(flag, flag)
        words.append(flag + equals + value)
    return words


class _Parser(argparse.ArgumentParser):
    """A parser whose complaints are errors of ours."""

    def error(self, message: str) -> None:  # type: ignore[override]
        """Raise instead of leaving the process."""
        raise UsageError(message, hint=f"see `{self.prog} --help`")


def _parser() -> _Parser:
    parser = _Parser(
        prog="python -m paceline.trainer",
        description="Train a built-in program as one rank of a job.",
        epilog="A flag may be written with dashes or underscores. Rank, world size and the "
        "master's address come from the launcher's environment variables.",
        allow_abbrev=False,
    )
    parser.add_argument("--program", choices=tuple(DEFAULTS), default="dcgan")
    _add_data(parser)
    _add_training(parser)
    _add_machine(parser)
    _add_output(parser)
    return parser


def _add_data(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("data")
    group.add_argument("--dataset", help="cifar10, mnist, fashion-mnist, folder, lfw, fake, ...")
    group.add_argument("--dataroot", type=Path, help="folder of the data set")
    group.add_argument("--download", action="store_true", help="fetch it where it is missing")
    group.add_argument("--test_data", action="store_true", help="train on the test split")
    group.add_argument("--count", type=_positive_int, help="use the first N images only")
    group.add_argument("--image_size", type=_positive_int, help="side of the images (64; mlp: 28)")
    group.add_argument(
        "--max_workers",
        type=_whole,
        default=0,
        help="accepted for habit's sake: the images are mapped, no worker is needed",
    )


def _add_training(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("training")
    group.add_argument("--num_epochs", type=_positive_int, help="epochs (also --epochs)")
    group.add_argument("--batch_size", type=_positive_int, help="images per step and process")
    group.add_argument("--learning_rate", type=_positive, help="learning rate (also --lr)")
    group.add_argument("--beta1", type=_decay, default=0.5, help="Adam's first decay")
    group.add_argument("--nz", type=_positive_int, default=100, help="size of the latent vector")
    group.add_argument("--ngf", type=_positive_int, default=64, help="width of the generator")
    group.add_argument("--ndf", type=_positive_int, default=64, help="width of the discriminator")
    group.add_argument("--seed", type=int, default=0, help="seed of weights, order and noise")
    group.add_argument("--sync_batchnorm", action="store_true", help="statistics over all ranks")
    group.add_argument("--iterations", type=_positive_int, help="stop after N steps")
    group.add_argument("--seconds", type=_positive, help="stop after S seconds of training")


def _add_machine(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("machine")
    group.add_argument("--device", choices=DEVICES, default="auto")
    group.add_argument("--cuda", action="store_true", help="the same as --device cuda")
    group.add_argument("--precision", choices=PRECISIONS, default="auto")
    group.add_argument("--wire", choices=WIRES, default="auto", help="how gradients are sent")
    group.add_argument("--local_rank", type=_whole, help="set by torch.distributed.launch")
    group.add_argument(
        "--timeout",
        dest="timeout_s",
        type=_positive,
        default=600.0,
        help="seconds that ranks wait for each other (600)",
    )


def _add_output(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("output")
    group.add_argument("--out_folder", type=Path, help=f"default: ${OUT_VARIABLE}, else here")
    group.add_argument("--pictures_every", type=_whole, default=100, help="0 = no pictures")
    group.add_argument("--quality", action="store_true", help="score the samples at epoch ends")
    group.add_argument(
        "--checkpoint_every",
        type=_whole,
        help="iterations between checkpoints; 0 = none (default: at the end of each epoch, "
        "none where --iterations or --seconds limits a measurement)",
    )
    group.add_argument("--keep_checkpoints", type=_positive_int, default=3)
    group.add_argument(
        "--resume",
        help="auto | never | PATH (default: never, but auto when a launcher restarts us)",
    )


def _positive_int(text: str) -> int:
    return _at_least(1, text)


def _whole(text: str) -> int:
    return _at_least(0, text)


def _at_least(least: int, text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        value = least - 1
    if value < least:
        raise argparse.ArgumentTypeError(f"{text!r} must be a whole number, {least} or more")
    return value


def _positive(text: str) -> float:
    value = _number(text)
    if value <= 0:
        raise argparse.ArgumentTypeError(f"{text!r} must be more than 0")
    return value


def _decay(text: str) -> float:
    value = _number(text)
    if not 0 <= value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} must be from 0 up to, but not, 1")
    return value


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number that can be used here")
    return value


def _check(options: Options) -> None:
    size = options.image_size
    if options.program == "dcgan" and (size < 16 or size & (size - 1)):  # noqa: PLR2004
        raise UsageError(
            f"--image_size {size}: a DCGAN doubles its images from 4x4",
            hint="use a power of two from 16 upwards; 64 is usual",
        )
