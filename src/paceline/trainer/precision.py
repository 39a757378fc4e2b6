"""Which number format to compute in: what was asked for, or what the hardware does fast."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch

from paceline.trainer.world import World

FP32 = "fp32"
BF16 = "bf16"
DTYPES = {FP32: torch.float32, BF16: torch.bfloat16}
# The instructions that make bf16 faster than fp32, as the kernel names them.
_FAST_BF16_FLAGS = ("avx512_bf16", "amx_bf16")
_FIRST_BF16_CAPABILITY = (8, 0)


@dataclass(frozen=True)
class Hardware:
    """What matters for the choice."""

    cpu_flags: frozenset[str] = frozenset()
    cuda_capability: tuple[int, int] | None = None


@dataclass(frozen=True)
class PrecisionChoice:
    """A format, and a sentence that says why."""

    name: str
    reason: str

    @property
    def dtype(self) -> torch.dtype:
        """The format for torch."""
        return DTYPES[self.name]


def choose_precision(asked: str, hardware: Hardware) -> PrecisionChoice:
    """Return the format to compute in; the weights are kept in fp32 in any case."""
    if asked != "auto":
        return PrecisionChoice(asked, f"precision {asked}: asked for")
    if hardware.cuda_capability is not None:
        if hardware.cuda_capability >= _FIRST_BF16_CAPABILITY:
            return PrecisionChoice(BF16, "precision bf16: this GPU computes in it")
        return PrecisionChoice(FP32, "precision fp32: this GPU has no bf16")
    fast = [flag for flag in _FAST_BF16_FLAGS if flag in hardware.cpu_flags]
    if fast:
        return PrecisionChoice(BF16, f"precision bf16: this CPU has {fast[0]}")
    return PrecisionChoice(FP32, "precision fp32: this CPU has no fast bf16")


def agreed(choice: PrecisionChoice, world: World) -> PrecisionChoice:
    """Return the format that all ranks can do fast: one without bf16 holds the others back."""
    somebody_cannot = world.largest(int(choice.name == FP32)) > 0
    if choice.name == BF16 and somebody_cannot:
        return PrecisionChoice(FP32, "precision fp32: another host has no fast bf16")
    return choice


def look_at_hardware(device: torch.device) -> Hardware:
    """Ask the kernel and torch."""
    if device.type == "cuda":
        return Hardware(cuda_capability=torch.cuda.get_device_capability(device))
    return Hardware(cpu_flags=_cpu_flags(Path("/proc/cpuinfo")))


def _cpu_flags(path: Path) -> frozenset[str]:
    try:
        text = path.read_text()
    except OSError:
        return frozenset()
    for line in text.splitlines():
        name, _, value = line.partition(":")
        if name.strip() in ("flags", "Features"):
            return frozenset(value.split())
    return frozenset()
