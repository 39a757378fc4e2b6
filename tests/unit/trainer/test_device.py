"""The choice of the device."""

from __future__ import annotations

import pytest
import torch

from paceline.errors import PlanError
from paceline.events import Place
from paceline.trainer import setup
from paceline.trainer.device import Accelerators, DeviceChoice, choose_device, tune_gpu
from paceline.trainer.options import parse
from paceline.trainer.world import World

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


@pytest.mark.parametrize("exact", [True, False])
def test_a_gpu_is_tuned(monkeypatch: pytest.MonkeyPatch, exact: bool) -> None:  # noqa: FBT001
    """Its fastest way is looked for; where fp32 is asked for, not among the inexact ones."""
    monkeypatch.setattr(torch.backends.cudnn, "benchmark", False)
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", exact)
    tune_gpu(exact=exact)
    assert torch.backends.cudnn.benchmark
    assert torch.backends.cudnn.allow_tf32 is not exact


@pytest.mark.parametrize(
    ("others", "device", "word"), [(0, "cuda:1", ""), (1, "cpu", "another rank has no GPU")]
)
def test_all_ranks_use_gpus_or_none_does(
    monkeypatch: pytest.MonkeyPatch, others: int, device: str, word: str
) -> None:
    """A rank takes the GPU of its local rank, unless a rank elsewhere has to use its CPU."""
    chosen: list[torch.device] = []
    monkeypatch.setattr(setup, "visible_accelerators", lambda: FOUR)
    monkeypatch.setattr(torch.cuda, "set_device", chosen.append)
    monkeypatch.setattr(World, "largest", lambda _, value: max(value, others))
    notes: list[str] = []
    found = setup._settle_device(parse([], {}), World(Place(1, 1, 4, 2), connected=True), notes)
    assert found == torch.device(device)
    assert chosen == ([found] if device != "cpu" else [])
    assert any(word in note for note in notes) if word else not notes
