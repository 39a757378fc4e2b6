"""A study as data: which configurations, how often each, and in which order."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import PurePath
from typing import Any

from paceline.model.host import HostFacts
from paceline.model.plan import (
    TRAIT_AXES,
    ArgValue,
    Configuration,
    PlannedSample,
    StudyPlan,
    digest_of,
)
from paceline.model.spec import Spec, to_plain
from paceline.planning.arguments import batch_size_of
from paceline.planning.fit import crowded, require_fit
from paceline.planning.split import baseline_batch, split_batches
from paceline.planning.variant import own_value, same_place

_AXES = ("nodes", "procs_per_node", "batch_size", "global_batch_size", *TRAIT_AXES)
# What a job may change without making its earlier samples incomparable.
_NO_EFFECT = (
    "procs_per_node", "timeout", "oversubscribe", "max_restarts", "master_port", "unit", "workdir",
    "sync", "hang_timeout", "rendezvous",
)  # fmt: skip


def plan_study(
    spec: Spec, facts: Sequence[HostFacts], *, code_digest: str | None = None
) -> StudyPlan:
    """Return the samples of a spec's study; PlanError names all that the hosts cannot carry.

    `code_digest` is the fingerprint of the job's own script: another script is another study.
    """
    baseline = baseline_of(spec)
    points = split_batches(spec, baseline, _grid_points(spec, facts))
    configurations = _distinct((baseline, *points))
    # What other hosts can carry is seen when they are there.
    here = [item for item in configurations if same_place(item, baseline)]
    require_fit(here, facts, oversubscribe=spec.job.oversubscribe)
    return StudyPlan(
        name=spec.name,
        baseline=baseline,
        configurations=configurations,
        samples=in_rounds(configurations, spec.study.samples, spec.study.seed),
        digest=study_digest(spec, code_digest),
        notes=tuple(_notes(here, facts)),
    )


def training_configuration(spec: Spec, facts: Sequence[HostFacts]) -> Configuration:
    """Return what the job itself describes, `paceline train` runs; PlanError if it does not fit."""
    configuration = _job_configuration(spec, facts)
    require_fit((configuration,), facts, oversubscribe=spec.job.oversubscribe)
    return configuration


def baseline_of(spec: Spec) -> Configuration:
    """Return the baseline; where it leaves an axis of the grid open, the job's value stands.

    Its batch size is its own, else the job's, else the only one that the grid has, so that a
    study of one batch size compares like with like.
    """
    baseline = spec.study.baseline
    own = dict(baseline.args)
    args = {
        name: own.get(name, spec.job.args.get(name))
        for name in (*_argument_axes(spec), *own)
        if name in own or name in spec.job.args
    }
    grid = spec.study.grid or {}
    traits = {axis: getattr(baseline, axis) for axis in TRAIT_AXES}
    for axis in TRAIT_AXES:
        if traits[axis] is None and axis in grid:
            traits[axis] = own_value(spec, axis) or grid[axis][0]
    return Configuration(
        nodes=baseline.nodes,
        procs_per_node=baseline.procs_per_node,
        batch_size=baseline_batch(spec),
        args=tuple((name, value) for name, value in args.items() if value is not None),
        **traits,
    )


def study_digest(spec: Spec, code_digest: str | None = None) -> str:
    """Return the fingerprint of what a measurement depends on.

    The grid, the number of samples and the baseline are left out, so that a study can be
    extended and keeps what it has measured.
    """
    plain = to_plain(spec)
    job = {name: value for name, value in plain["job"].items() if name not in _NO_EFFECT}
    if spec.job.script is not None:
        # By content and not by place: a project that was moved measures the same.
        job["script"] = PurePath(spec.job.script).name
    job["code"] = code_digest
    beside = ("nodes", "accept_new_host_keys")
    cluster = {name: value for name, value in plain["cluster"].items() if name not in beside}
    data = {name: value for name, value in plain["data"].items() if name != "download"}
    measurement = spec.measurement
    measure = [measurement.kind, measurement.amount, measurement.warmup]
    return digest_of(
        {
            "cluster": cluster,
            "runtime": _runtime_that_counts(plain["runtime"]),
            "data": data,
            "job": job,
            "measure": measure,
        }
    )


def _runtime_that_counts(runtime: Mapping[str, Any]) -> Mapping[str, Any]:
    """Leave out how the same is brought about, and what nobody has said; names count, not places.

    What is installed in the end, the provenance of each run tells.
    """
    kept = {name: runtime[name] for name in ("kind", "python", "env")}
    for name in ("packages", "torch", "image", "build_args", "options"):
        if runtime.get(name):
            kept[name] = runtime[name]
    for name in ("requirements", "dockerfile"):
        if runtime.get(name):
            kept[name] = PurePath(runtime[name]).name
    return kept


def _job_configuration(spec: Spec, facts: Sequence[HostFacts]) -> Configuration:
    return Configuration(
        nodes=spec.cluster.nodes or max(1, len(facts)),
        procs_per_node=spec.job.procs_per_node,
        batch_size=batch_size_of(spec),
    )


def _argument_axes(spec: Spec) -> tuple[str, ...]:
    return tuple(name for name in spec.study.grid or {} if name not in _AXES)


def _grid_points(spec: Spec, facts: Sequence[HostFacts]) -> Iterator[Configuration]:
    """Yield every point; where the batch is split, `batch_size` is still that of all processes."""
    grid = spec.study.grid or _default_grid(facts)
    job = _job_configuration(spec, facts)
    names = _argument_axes(spec)
    sizes = grid.get("global_batch_size") or grid.get("batch_size") or (job.batch_size,)
    axes: tuple[Sequence[Any], ...] = (
        grid.get("nodes", (job.nodes,)),
        grid.get("procs_per_node", (job.procs_per_node,)),
        sizes,
        *(grid.get(axis, (_own_if_compared(spec, axis),)) for axis in TRAIT_AXES),
        *(grid[name] for name in names),
    )
    for nodes, procs, size, instance_type, runtime, launcher, *values in product(*axes):
        yield Configuration(
            nodes=nodes,
            procs_per_node=procs,
            batch_size=size,
            args=tuple(zip(names, values, strict=True)),
            instance_type=instance_type,
            runtime=runtime,
            launcher=launcher,
        )


def _own_if_compared(spec: Spec, axis: str) -> str | None:
    """Return the spec's own value of a trait where its baseline has another; else None."""
    return own_value(spec, axis) if getattr(spec.study.baseline, axis) is not None else None


def _default_grid(facts: Sequence[HostFacts]) -> Mapping[str, tuple[ArgValue, ...]]:
    cores = min((host.cores for host in facts), default=1)
    return {"nodes": _doublings(len(facts)), "procs_per_node": _doublings(cores)}


def _doublings(most: int) -> tuple[int, ...]:
    """Return the powers of two up to `most`, and `most` itself."""
    powers = [2**exponent for exponent in range(most.bit_length())]
    return tuple(sorted({*(power for power in powers if power <= most), max(1, most)}))


def _distinct(configurations: Sequence[Configuration]) -> tuple[Configuration, ...]:
    return tuple({item.label: item for item in reversed(configurations)}.values())[::-1]


def in_rounds(
    configurations: Sequence[Configuration], samples: int, seed: int
) -> tuple[PlannedSample, ...]:
    """Return every configuration once per round, shuffled anew in each round.

    A machine that grows slower in the course of a study then slows all configurations alike,
    instead of the last ones only. The place within a round follows from a hash, so that a study
    that is extended keeps the order of what it had. Each instance type has rounds of its own:
    its hosts are rented once.
    """
    types = dict.fromkeys(item.instance_type for item in configurations)
    return tuple(
        PlannedSample(sample_id=f"{item.label}-s{number}", configuration=item, index=number)
        for kind in types
        for number in range(1, samples + 1)
        for item in sorted(configurations, key=lambda item: _place(seed, number, item.label))
        if item.instance_type == kind
    )


def _place(seed: int, number: int, label: str) -> bytes:
    return hashlib.sha256(f"{seed}/{number}/{label}".encode()).digest()


def _notes(configurations: Sequence[Configuration], facts: Sequence[HostFacts]) -> Iterator[str]:
    for item in configurations:
        if crowded(item, facts):
            yield f"{item.title}: more processes than cores; they take turns"
