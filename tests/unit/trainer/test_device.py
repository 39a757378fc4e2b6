"""The choice of the device."""

from __future__ import annotations

import pytest

from paceline.errors import PlanError
from paceline.trainer.device import Accelerators, DeviceChoice, choose_device

pytestmark = pytest.mark.torch
FOUR = Accelerators(count=4, nccl=True)


def _choose(asked: str, found: Accelerators, *, rank: int = 0, ranks: int = 1) -> DeviceChoice:
    return choose_device(asked, local_rank=rank, local_world_size=ranks, found=found)


@pytest.mark.parametrize("asked", ["auto", "cuda"])
def test_each_process_has_a_gpu_of_its_own(asked: str) -> None:
    """The local rank is the number of the GPU."""
    names = [_choose(asked, FOUR, rank=rank, ranks=4).name for rank in range(4)]
    assert names == ["cuda:0", "cuda:1", "cuda:2", "cuda:3"]


def test_the_cpu_is_used_where_it_is_asked_for() -> None:
    """`cpu` means the CPU, whatever else there is, and nothing needs to be said."""
    assert _choose("cpu", FOUR) == DeviceChoice("cpu")


def test_a_missing_gpu_is_said() -> None:
    """Who asks for CUDA where there is none trains on the CPU and is told so."""
    choice = _choose("cuda", Accelerators())
    assert not choice.is_cuda
    assert choice.note is not None
    assert "no CUDA device" in choice.note


def test_no_gpu_is_no_news_where_none_was_asked_for() -> None:
    """`auto` on a machine without a GPU says nothing."""
    assert _choose("auto", Accelerators()) == DeviceChoice("cpu")


def test_more_processes_than_gpus() -> None:
    """They cannot share: an error if CUDA was asked for, else the CPU, and a word about it."""
    with pytest.raises(PlanError, match="6 processes on this host, but 4"):
        _choose("cuda", FOUR, ranks=6)
    choice = _choose("auto", FOUR, ranks=6)
    assert choice.name == "cpu"
    assert choice.note is not None


def test_several_gpus_need_nccl() -> None:
    """Without NCCL only a process that is alone uses its GPU."""
    bare = Accelerators(count=4, nccl=False)
    assert _choose("auto", bare).name == "cuda:0"
    assert _choose("auto", bare, ranks=2).name == "cpu"
