"""On what a rank computes: chosen from facts by a pure function, with its reason."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.distributed as dist

from paceline.errors import PlanError


@dataclass(frozen=True)
class Accelerators:
    """The GPUs that this process can see, and whether NCCL came with this torch."""

    count: int = 0
    nccl: bool = False


@dataclass(frozen=True)
class DeviceChoice:
    """`cpu` or `cuda:N`, and a sentence where it is not what one would expect."""

    name: str
    note: str | None = None

    @property
    def is_cuda(self) -> bool:
        """Whether this is a GPU."""
        return self.name.startswith("cuda")


def choose_device(
    asked: str, *, local_rank: int, local_world_size: int, found: Accelerators
) -> DeviceChoice:
    """Return this rank's device: one GPU per process, else the CPU, which is then said."""
    if asked == "cpu":
        return DeviceChoice("cpu")
    if found.count == 0:
        note = "no CUDA device is usable here: training on the CPU" if asked == "cuda" else None
        return DeviceChoice("cpu", note)
    needed = max(local_world_size, local_rank + 1)
    if needed > found.count:
        problem = f"{needed} processes on this host, but {found.count} CUDA device(s)"
        if asked == "cuda":
            raise PlanError(problem, hint="start one process per GPU, or use --device cpu")
        return DeviceChoice("cpu", f"{problem}: training on the CPU")
    if local_world_size > 1 and not found.nccl:
        return DeviceChoice("cpu", "this torch has no NCCL: training on the CPU")
    return DeviceChoice(f"cuda:{local_rank}")


def visible_accelerators() -> Accelerators:
    """Ask torch what there is."""
    if not torch.cuda.is_available():
        return Accelerators()
    return Accelerators(count=torch.cuda.device_count(), nccl=dist.is_nccl_available())


def tune_gpu(*, exact: bool) -> None:
    """Let cuDNN choose its fastest algorithms, of full fp32 precision where that was asked for."""
    torch.backends.cudnn.benchmark = True
    # By default cuDNN multiplies fp32 numbers rounded to 10 bits where the GPU can.
    torch.backends.cudnn.allow_tf32 = not exact
