"""From options to a training that can start."""

from __future__ import annotations

import pytest
import torch

from paceline.errors import DataError
from paceline.events import Place
from paceline.trainer.classifying import Classifying
from paceline.trainer.gan import Gan
from paceline.trainer.options import parse
from paceline.trainer.setup import choose_wire, make_ready
from paceline.trainer.world import World

pytestmark = pytest.mark.torch
ALONE = World(Place())
TOGETHER = World(Place(0, 0, 2, 1), connected=True)
TINY = "--dataset fake --count 12 --nz 4 --ngf 4 --ndf 4 --device cpu"


@pytest.mark.parametrize(
    ("asked", "precision", "world", "expected"),
    [
        ("auto", "bf16", ALONE, None),
        ("auto", "bf16", TOGETHER, "bf16"),
        ("auto", "fp32", TOGETHER, "fp32"),
        ("fp32", "bf16", TOGETHER, "fp32"),
        ("int8", "fp32", TOGETHER, "int8"),
    ],
)
def test_gradients_travel_as_they_are_computed(
    asked: str, precision: str, world: World, expected: str | None
) -> None:
    """`auto` follows the precision and never chooses the lossy int8; one rank sends nothing."""
    assert choose_wire(asked, precision, world) == expected


@pytest.mark.parametrize(
    ("precision", "dtype"), [("fp32", torch.float32), ("bf16", torch.bfloat16)]
)
def test_a_dcgan_is_made_ready(precision: str, dtype: torch.dtype) -> None:
    """The program, its data and what describes them fit the options."""
    ready = make_ready(parse([*TINY.split(), "--precision", precision], {}), ALONE, ("before",))
    assert isinstance(ready.program, Gan)
    assert ready.setting.dtype == dtype
    assert len(ready.images) == 12
    info = ready.info
    assert (info["program"], info["device"], info["precision"]) == ("dcgan", "cpu", precision)
    assert (info["wire"], info["backend"], info["images"]) == (None, None, 12)
    assert (info["torch"], info["dataset"]) == (torch.__version__, "fake")
    assert "generated" in str(info["source"])
    assert ready.notes[0] == "before"
    assert f"precision {precision}: asked for" in ready.notes


def test_a_classifier_is_made_ready() -> None:
    """The MLP takes grey 28x28 images and computes in fp32 unless told otherwise."""
    ready = make_ready(parse(["--program", "mlp", "--dataset", "fake", "--count", "12"], {}), ALONE)
    assert isinstance(ready.program, Classifying)
    assert (ready.info["precision"], ready.info["batch_size"]) == ("fp32", 16)
    source = ready.images.source
    assert (source.channels, source.height, source.width) == (1, 28, 28)


def test_a_wish_for_cuda_falls_back_and_says_so() -> None:
    """Without a GPU the training runs on the CPU, and a note tells."""
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    ready = make_ready(parse(f"{TINY} --device cuda".split(), {}), ALONE)
    assert ready.info["device"] == "cpu"
    assert any("no CUDA device" in note for note in ready.notes)


class _Apart(World):
    """A world in which the others hold other data."""

    def largest(self, value: int) -> int:
        """Return something larger for every large number."""
        return value + 1 if abs(value) > 1000 else value


def test_hosts_with_different_data_are_refused() -> None:
    """A training on two different sets would be wrong without anybody noticing."""
    with pytest.raises(DataError, match="not the same on all hosts"):
        make_ready(parse(TINY.split(), {}), _Apart(Place()))
