"""Batch sizes of a study: that of each process, or one for all together that is split."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from paceline.errors import PlanError
from paceline.model.plan import Configuration
from paceline.model.spec import Spec
from paceline.planning.arguments import batch_size_of


def baseline_batch(spec: Spec) -> int | None:
    """Return the batch size of each process of the baseline; None where nobody named one.

    It is the baseline's own, else the job's, else the only one that the grid has, so that a
    study of one batch size compares like with like.
    """
    own = spec.study.baseline
    grid = spec.study.grid or {}
    processes = own.nodes * own.procs_per_node
    totals = grid.get("global_batch_size", ())
    if own.global_batch_size is not None:
        return _share(own.global_batch_size, processes, "the baseline")
    if own.batch_size is None and totals and isinstance(totals[0], int):
        return _share(totals[0], processes, "the baseline")
    sizes = grid.get("batch_size", ())
    only = sizes[0] if len(set(sizes)) == 1 and isinstance(sizes[0], int) else None
    candidates = (own.batch_size, batch_size_of(spec), only)
    return next((size for size in candidates if size is not None), None)


def split_batches(
    spec: Spec, baseline: Configuration, points: Iterable[Configuration]
) -> list[Configuration]:
    """Return the points with the batch of each process; PlanError where one cannot be split.

    Under strong scaling, the points of a grid without batch sizes share out the baseline's.
    """
    if spec.scaling == "weak":
        return list(points)
    named = "global_batch_size" in (spec.study.grid or {})
    made, problems = [], []
    for point in points:
        total = point.batch_size if named else baseline.global_batch_size
        if total is None:
            raise PlanError(
                "strong scaling splits a batch, and no batch size is given",
                hint="set study.baseline.global_batch_size, or job.args.batch_size",
            )
        if total % point.world_size:
            alone = replace(point, batch_size=None)
            problems.append(f"  {alone.title}: {total} is no multiple of {point.world_size}")
        made.append(replace(point, batch_size=max(1, total // point.world_size)))
    if problems:
        raise PlanError(
            "the batch cannot be split evenly:\n" + "\n".join(dict.fromkeys(problems)),
            hint="choose batch sizes that all numbers of processes divide",
        )
    return made


def _share(total: int, processes: int, whose: str) -> int:
    if total % processes:
        raise PlanError(
            f"the batch of {whose} cannot be split evenly: {total} is no multiple of {processes}",
            hint="choose batch sizes that all numbers of processes divide",
        )
    return total // processes
