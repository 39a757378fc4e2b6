"""How fast torch multiplies here, and adds up with its peers: `python -m paceline.trainer.gauge`.

    gemm THREADS        GFLOP/s of a matrix product, in fp32 and bf16, by one thread and by all
    all_reduce BYTES …  seconds of an all-reduce over gloo, for each size; ranks by environment

JSON on stdout, from rank 0 where there are several.
"""

from __future__ import annotations

import json
import sys
import time
from datetime import timedelta

import torch
import torch.distributed as dist

# Large enough that a product is bound by arithmetic, small enough for a few of them in the time.
_SIDE = 1024
_GEMM_S = 0.25
_REDUCE_S = 0.6
_MEET_WITHIN_S = 20.0


def gemm(threads: int) -> dict[str, float]:
    """Return the best of the products that fit into the time: what disturbs only slows down."""
    found = {}
    for name, kind in (("fp32", torch.float32), ("bf16", torch.bfloat16)):
        for words, count in (("one", 1), ("all", max(1, threads))):
            torch.set_num_threads(count)
            found[f"{name}_gflops_{words}"] = _product_gflops(kind)
    return found


def _product_gflops(kind: torch.dtype) -> float:
    one = torch.rand(_SIDE, _SIDE).to(kind)
    other, result = one.t().contiguous(), torch.empty_like(one)
    torch.mm(one, other, out=result)
    best_s, until = float("inf"), time.perf_counter() + _GEMM_S
    while time.perf_counter() < until:
        begun = time.perf_counter()
        torch.mm(one, other, out=result)
        best_s = min(best_s, time.perf_counter() - begun)
    # A processor without bf16 is so slow that not even one product fits.
    return 2 * _SIDE**3 / best_s / 1e9 if best_s < float("inf") else 0.0


def all_reduce(sizes_bytes: list[int]) -> list[dict[str, float]]:
    """Return the median time of an all-reduce of each size, as this rank sees it."""
    dist.init_process_group("gloo", timeout=timedelta(seconds=_MEET_WITHIN_S))
    try:
        return [
            {
                "size_bytes": size,
                "hosts": dist.get_world_size(),
                "seconds": _reduce_s(torch.ones(max(1, size // 4))),
            }
            for size in sizes_bytes
        ]
    finally:
        dist.destroy_process_group()


def _reduce_s(message: torch.Tensor) -> float:
    dist.all_reduce(message)  # the first one connects the ranks
    begun = time.perf_counter()
    dist.all_reduce(message)
    # All ranks must make the same number of rounds: rank 0 says how many fit.
    rounds = torch.tensor([max(2, min(30, int(_REDUCE_S / (time.perf_counter() - begun))))])
    dist.broadcast(rounds, 0)
    times = []
    for _ in range(int(rounds)):
        dist.barrier()
        begun = time.perf_counter()
        dist.all_reduce(message)
        times.append(time.perf_counter() - begun)
    return sorted(times)[len(times) // 2]


def main(words: list[str]) -> int:
    """Carry out one command."""
    command, *rest = words or [""]
    if command == "gemm" and len(rest) == 1:
        found: object = gemm(int(rest[0]))
    elif command == "all_reduce" and rest:
        found = all_reduce([int(word) for word in rest])
    else:
        sys.stderr.write("say one of: gemm THREADS, all_reduce BYTES …\n")
        return 2
    sys.stdout.write(json.dumps(found) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
