"""A probe as a spec: a few iterations on each candidate, instead of the whole study."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from paceline.model.spec import Spec
from paceline.model.spec.spec import to_data

# One host and two: communication shows, and a model reaches from there to more.
_FEWEST_NODES = 2
_SUFFIX = "-probe"


def probe_mapping(
    spec: Spec, iterations: int, types: Sequence[str] = (), nodes: Sequence[int] = ()
) -> dict[str, Any]:
    """Return the spec of a probe: one sample of each candidate, of so many iterations in all.

    Candidates are the study's grid, with its smallest two host counts unless `nodes` says
    others; the rest is predicted. The warm-up is part of the iterations.
    """
    data = to_data(spec)
    study = {
        key: value for key, value in data["study"].items() if key not in ("measure", "seconds")
    }
    warmup = min(spec.study.warmup, iterations - 1)
    grid: dict[str, list[Any]] = {
        name: list(values) for name, values in (spec.study.grid or {}).items()
    }
    counts = sorted({spec.study.baseline.nodes, *grid.get("nodes", (spec.cluster.nodes or 1,))})
    if spec.study.grid is not None or nodes or types:
        grid["nodes"] = list(nodes or counts[:_FEWEST_NODES])
        if types:
            grid["instance_type"] = list(types)
    study |= {
        "grid": grid or None,
        "samples": 1,
        "iterations": iterations - warmup,
        "warmup": warmup,
        "adaptive": False,
    }
    return {**data, "name": f"{spec.name}{_SUFFIX}", "study": study}
