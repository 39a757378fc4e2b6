"""The command line: the public program's flags, both spellings, all defaults."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.errors import UsageError
from paceline.trainer.options import DEFAULTS, normalised, parse

PUBLIC = [
    "--dataset",
    "cifar10",
    "--dataroot",
    "./cifar10",
    "--num_epochs",
    "1",
    "--download",
    "--batch_size",
    "16",
    "--learning_rate",
    "0.0003",
    "--image_size",
    "32",
    "--test_data",
    "--seed",
    "4",
    "--cuda",
    "--beta1",
    "0.4",
    "--nz",
    "50",
    "--ngf",
    "32",
    "--ndf",
    "16",
    "--out_folder",
    "out",
    "--max_workers",
    "2",
    "--local_rank",
    "1",
]


def test_every_flag_of_the_public_program_is_known() -> None:
    """All flags of the public program mean what they mean there."""
    options = parse(PUBLIC, {})
    assert (options.dataset, options.dataroot) == ("cifar10", Path("cifar10"))
    assert (options.num_epochs, options.batch_size, options.learning_rate) == (1, 16, 0.0003)
    assert (options.image_size, options.split, options.seed) == (32, "test", 4)
    assert (options.device, options.download, options.beta1) == ("cuda", True, 0.4)
    assert (options.nz, options.ngf, options.ndf) == (50, 32, 16)
    assert (options.out_folder, options.max_workers, options.local_rank) == (Path("out"), 2, 1)


@given(st.sampled_from([word for word in PUBLIC if word.startswith("--")]))
def test_dashes_and_underscores_are_the_same(flag: str) -> None:
    """A flag may be written with dashes, and with its value after an equals sign."""
    dashed = "--" + flag[2:].replace("_", "-")
    assert normalised([dashed, "some-value", f"{dashed}=a-b_c"]) == [
        flag,
        "some-value",
        f"{flag}=a-b_c",
    ]


@pytest.mark.parametrize(("word", "name"), [("--epochs", "num_epochs"), ("--lr", "learning_rate")])
def test_short_names_are_known(word: str, name: str) -> None:
    """`--epochs` and `--lr` are other names of the public flags."""
    assert getattr(parse([word, "3"], {}), name) == 3


@pytest.mark.parametrize("program", DEFAULTS)
def test_each_program_has_its_own_defaults(program: str) -> None:
    """What the command line leaves open is what the program usually uses."""
    options = parse(["--program", program], {})
    expected = DEFAULTS[program]
    assert options.dataset == expected.dataset
    assert options.batch_size == expected.batch_size
    assert options.learning_rate == expected.learning_rate
    assert options.image_size == expected.image_size
    assert options.num_epochs == expected.num_epochs


def test_output_goes_where_the_supervisor_says() -> None:
    """Without --out_folder, PACELINE_OUT decides; without that, the current folder."""
    assert parse([], {"PACELINE_OUT": "/job/out"}).out_folder == Path("/job/out")
    assert parse([], {}).out_folder == Path()
    assert parse(["--out", "x"], {"PACELINE_OUT": "/job/out"}).out_folder == Path("x")


@pytest.mark.parametrize(
    "words",
    [
        "--no_such_flag 1",
        "--batch_size 0",
        "--batch_size many",
        "--program transformer",
        "--image_size 48",
        "--image_size 8",
        "--seconds 0",
        "--seconds inf",
        "--lr 0",
        "--lr nan",
        "--lr fast",
        "--beta1 1",
        "--timeout -1",
        "--checkpoint_every -1",
        "--batch 16",
    ],
)
def test_a_wrong_word_is_an_error_of_ours(words: str) -> None:
    """A flag that does not fit, or an abbreviation, raises UsageError."""
    with pytest.raises(UsageError):
        parse(words.split(), {})


def test_a_wrong_number_is_named_with_what_is_wanted() -> None:
    """The words are for people: no name of ours, no type."""
    with pytest.raises(UsageError, match="--batch_size: 'many' must be a whole number, 1 or more"):
        parse(["--batch_size", "many"], {})


def test_a_classifier_takes_any_image_size() -> None:
    """Only the DCGAN needs a power of two."""
    assert parse(["--program", "mlp", "--image_size", "30"], {}).image_size == 30
