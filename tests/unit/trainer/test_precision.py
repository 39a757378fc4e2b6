"""The choice of the number format."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from paceline.events import Place
from paceline.trainer import precision
from paceline.trainer.precision import Hardware, PrecisionChoice, choose_precision
from paceline.trainer.world import World

pytestmark = pytest.mark.torch


@pytest.mark.parametrize(
    ("hardware", "expected"),
    [
        (Hardware(), "fp32"),
        (Hardware(frozenset({"avx2", "avx512f"})), "fp32"),
        (Hardware(frozenset({"avx512f", "avx512_bf16"})), "bf16"),
        (Hardware(frozenset({"amx_bf16"})), "bf16"),
        (Hardware(cuda_capability=(7, 5)), "fp32"),
        (Hardware(cuda_capability=(8, 0)), "bf16"),
        (Hardware(cuda_capability=(12, 0)), "bf16"),
    ],
)
def test_auto_is_what_the_hardware_does_fast(hardware: Hardware, expected: str) -> None:
    """The instructions of the CPU, or the generation of the GPU, decide; the reason is said."""
    choice = choose_precision("auto", hardware)
    assert choice.name == expected
    assert choice.reason.startswith(f"precision {expected}: ")


@pytest.mark.parametrize("asked", ["fp32", "bf16"])
def test_what_is_asked_for_is_done(asked: str) -> None:
    """An explicit format is used on any hardware."""
    choice = choose_precision(asked, Hardware())
    assert choice.name == asked
    assert choice.dtype == {"fp32": torch.float32, "bf16": torch.bfloat16}[asked]


class _Others(World):
    """A world in which the others' largest value is given."""

    others = 0

    def largest(self, value: int) -> int:
        """Return the larger of ours and theirs."""
        return max(value, self.others)


def test_the_slowest_host_decides() -> None:
    """Where one rank has no fast bf16, all compute in fp32, and say why."""
    world = _Others(Place())
    bf16 = PrecisionChoice("bf16", "")
    assert precision.agreed(bf16, world).name == "bf16"
    world = type("Slow", (_Others,), {"others": 1})(Place())
    assert precision.agreed(bf16, world).name == "fp32"
    assert "another host" in precision.agreed(bf16, world).reason


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("processor\t: 0\nflags\t\t: fpu avx2 amx_bf16\n", {"fpu", "avx2", "amx_bf16"}),
        ("Features\t: fp asimd bf16\n", {"fp", "asimd", "bf16"}),
        ("nothing\n", set()),
    ],
)
def test_flags_are_read_from_the_kernel(tmp_path: Path, text: str, expected: set[str]) -> None:
    """x86 and ARM name their instructions in different lines."""
    path = tmp_path / "cpuinfo"
    path.write_text(text)
    assert precision._cpu_flags(path) == expected


def test_no_list_of_flags_is_no_error(tmp_path: Path) -> None:
    """Where the kernel says nothing, nothing is known."""
    assert precision._cpu_flags(tmp_path / "absent") == frozenset()
