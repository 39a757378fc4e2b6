"""The samples of a study as launches: what Paceline measured itself teaches like any file."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import fmean, median

from paceline.advise.nouns import EpochTimes, Launch, Target
from paceline.model.plan import Configuration
from paceline.model.summary import RankSample, Sample

# What a host without a type of its own is called; all such hosts of a study count as equal.
ANY_HOST = "host"


def kind_of(configuration: Configuration) -> str:
    """Return what a configuration has beside type, processes and batch: its runtime, arguments.

    How two kinds relate follows from no formula, so each is learned from by itself.
    """
    others = (f"{name}={value}" for name, value in configuration.traits if name != "instance_type")
    return " ".join(others)


def target_of(configuration: Configuration, instance_type: str | None) -> Target:
    """Return a configuration as a target; without a batch size, a job's step is one item."""
    return Target(
        configuration.instance_type or instance_type or ANY_HOST,
        configuration.nodes,
        configuration.procs_per_node,
        configuration.batch_size or 1,
    )


def launches_of_samples(
    samples: Sequence[Sample], instance_type: str | None = None
) -> tuple[Launch, ...]:
    """Return the launches that good samples were; samples without iterations teach nothing."""
    numbers: dict[tuple[str, Target], int] = defaultdict(int)
    launches = []
    for sample in samples:
        target, kind = target_of(sample.configuration, instance_type), kind_of(sample.configuration)
        epochs = _epochs(sample.ranks) if sample.failed is None else ()
        if epochs:
            launches.append(Launch(kind, target, epochs, numbers[kind, target]))
            numbers[kind, target] += 1
    return tuple(launches)


def _epochs(ranks: Sequence[RankSample]) -> tuple[EpochTimes, ...]:
    """Return the epochs that ranks went through, the warm-up included, from their first one."""
    courses = [(*rank.warmup_s, *rank.iteration_s) for rank in ranks]
    seconds = [fmean(step) for step in zip(*courses, strict=False)]
    if not seconds or min(seconds) <= 0:
        return ()
    counts = [rank.iterations_per_epoch for rank in ranks if rank.iterations_per_epoch]
    planned = max(counts, default=None)
    length = planned or len(seconds)
    return tuple(
        EpochTimes(number, planned, dict(enumerate(seconds[begin : begin + length])))
        for number, begin in enumerate(range(0, len(seconds), length))
    )


def setup_s(samples: Sequence[Sample], instance_type: str | None) -> Mapping[str, float]:
    """Return, by instance type, what a run usually takes beside its iterations."""
    found: dict[str, list[float]] = defaultdict(list)
    for sample in samples:
        inside = [math.fsum((*rank.warmup_s, *rank.iteration_s)) for rank in sample.ranks]
        if sample.failed is None and sample.wall_s is not None and inside and max(inside) > 0:
            name = target_of(sample.configuration, instance_type).instance_type
            found[name].append(max(0.0, sample.wall_s - max(inside)))
    return {name: median(values) for name, values in found.items()}
