"""Which rank this process is."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

_RANK_VARIABLES = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID")
_LOCAL_RANK_VARIABLES = (
    "LOCAL_RANK",
    "OMPI_COMM_WORLD_LOCAL_RANK",
    "MPI_LOCALRANKID",
    "SLURM_LOCALID",
)
_WORLD_SIZE_VARIABLES = ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS")
_LOCAL_SIZE_VARIABLES = (
    "LOCAL_WORLD_SIZE",
    "OMPI_COMM_WORLD_LOCAL_SIZE",
    "MPI_LOCALNRANKS",
    "SLURM_NTASKS_PER_NODE",
)


@dataclass(frozen=True)
class Place:
    """Which rank this process is, as its launcher says through the environment."""

    rank: int = 0
    local_rank: int = 0
    world_size: int = 1
    local_world_size: int = 1

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] | None = None) -> Place:
        """Read torchrun's variables, else Open MPI's, MPICH's or Slurm's, else be alone."""
        env = os.environ if environ is None else environ
        rank = first_int(env, _RANK_VARIABLES, 0)
        return cls(
            rank=rank,
            local_rank=first_int(env, _LOCAL_RANK_VARIABLES, rank),
            world_size=first_int(env, _WORLD_SIZE_VARIABLES, 1),
            local_world_size=first_int(env, _LOCAL_SIZE_VARIABLES, 1),
        )


def first_int(env: Mapping[str, str], names: Iterable[str], default: int) -> int:
    """Return the first of these variables that holds a whole number."""
    for name in names:
        value = env.get(name, "").strip()
        if value.isdecimal():
            return int(value)
    return default
