"""The demo's spec: a few minutes of DCGAN on this machine."""

from __future__ import annotations

from typing import Any

# A sample of about ten seconds: shorter ones say little on a machine that does other things, too.
DEMO_ITERATIONS = 60
DEMO_SAMPLES = 3


def demo_mapping(cores: int, cifar10: str | None) -> dict[str, Any]:
    """Return the spec of the demo for a machine, on real CIFAR-10 where it lies here already."""
    data: dict[str, Any] = {"dataset": "fake"}
    if cifar10 is not None:
        data = {"dataset": "cifar10", "root": cifar10}
    procs = [2**power for power in range(cores.bit_length()) if 2**power <= cores]
    # One thread each: a process then stands for one core, and the study for what cores are worth.
    return {
        "name": f"demo-{data['dataset']}",
        "data": data,
        "job": {"program": "dcgan", "threads": 1, "args": {"batch_size": 16}},
        "study": {
            "baseline": {"nodes": 1, "procs_per_node": 1},
            "grid": {"procs_per_node": sorted({*procs, max(1, cores)})},
            "samples": DEMO_SAMPLES,
            "iterations": DEMO_ITERATIONS,
        },
    }
