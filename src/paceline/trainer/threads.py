"""How many threads a rank computes with."""

from __future__ import annotations

import os
from collections.abc import Mapping

import torch

from paceline.events import Place


def choose_threads(place: Place, environ: Mapping[str, str], cores: int) -> int | None:
    """Return the threads to set, or None where the launcher or torch has decided."""
    if environ.get("OMP_NUM_THREADS") or place.local_world_size == 1:
        return None
    return max(1, cores // place.local_world_size)


def settle_threads(place: Place) -> tuple[str, ...]:
    """Set the number of threads where nobody did; return what there is to say about it."""
    # Numbers too small for the normal format cost a hundred times as much, and tell nothing.
    # The threads of the pool inherit this, so it comes first.
    torch.set_flush_denormal(True)
    cores = len(os.sched_getaffinity(0))
    threads = choose_threads(place, os.environ, cores)
    if threads is None:
        return ()
    torch.set_num_threads(threads)
    processes = f"{place.local_world_size} processes on {cores} cores"
    return (f"OMP_NUM_THREADS is not set: {threads} thread(s) for each of {processes}",)
