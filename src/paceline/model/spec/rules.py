"""What no single value can say: the rules between the keys of a spec.

They read plain data, so that a file with other mistakes in it is checked by them as well, and
all mistakes are reported together. What has the wrong type is passed over here; the models
complain about it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import combinations
from typing import Any, get_args

from paceline.model.spec.sections import (
    HOW_TO_MEASURE,
    RENTED_ONLY,
    WHAT_TO_RUN,
    WHERE_HOSTS_ARE,
    JobSpec,
    RuntimeSpec,
    Section,
)

Path = tuple[str | int, ...]

_NUMBERS = ("nodes", "procs_per_node", "batch_size", "global_batch_size")
# Axes that choose among the words of a key elsewhere in the spec.
_CHOICES: Mapping[str, tuple[type[Section], str]] = {
    "runtime": (RuntimeSpec, "kind"),
    "launcher": (JobSpec, "launcher"),
}
AXES = (*_NUMBERS, "instance_type", *_CHOICES)
_LARGEST_GRID = 10_000
_LARGEST_AXIS_VALUE = 10_000
_OF_KINDS: Mapping[str, tuple[str, ...]] = {
    "venv": ("requirements", "packages", "torch", "wheels"),
    "docker": (
        "dockerfile", "context", "image", "build_args", "build_on", "build_options", "options",
    ),
}  # fmt: skip
_BESIDE = "stands beside {}; give only one of them"
_NEEDS_ROOT = ("imagenet", "folder", "lfw", "lsun")
_IMAGE_ID = re.compile(r"ami-[0-9a-f]{8,17}")
_SET_BY_LAUNCHER = (
    "RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "NODE_RANK", "GROUP_RANK",
    "MASTER_ADDR", "PACELINE_EVENTS", "PACELINE_OUT", "PACELINE_JOB",
)  # fmt: skip


@dataclass(frozen=True)
class Problem:
    """One mistake: the path of the key that it is about, and what is wrong with it."""

    path: Path
    text: str

    @property
    def where(self) -> str:
        """The path as people write it: `study.grid.nodes[1]`."""
        words = ""
        for part in self.path:
            words += f"[{part}]" if isinstance(part, int) else f".{part}" if words else part
        return words


def broken_rules(data: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield every rule that plain data breaks."""
    job, study = _section(data, "job"), _section(data, "study")
    yield from _one_of("job", job, WHAT_TO_RUN)
    yield from _one_of("study", study, HOW_TO_MEASURE)
    yield from _cluster(_section(data, "cluster"))
    yield from _runtime(data)
    yield from _restarts(job)
    yield from _command(job)
    for section in ("job", "runtime"):
        yield from _environment(section, _section(_section(data, section), "env"))
    yield from _threads(data)
    yield from _grid(study, _section(job, "args"))
    yield from _baseline_arguments(study, _section(job, "args"))
    for axis in _CHOICES:
        value = _section(study, "baseline").get(axis)
        if value is not None:
            yield from _choice(("study", "baseline", axis), axis, value)
    yield from _scaling(data)
    yield from _instance_types(data)
    yield from _data(_section(data, "data"), job)


def _section(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = data.get(name)
    return value if isinstance(value, Mapping) else {}


def _one_of(section: str, data: Mapping[str, Any], names: Sequence[str]) -> Iterator[Problem]:
    given = [name for name in names if data.get(name) is not None]
    for name in given[1:]:
        yield Problem((section, name), f"stands beside {section}.{given[0]}; give only one of them")


def _cluster(cluster: Mapping[str, Any]) -> Iterator[Problem]:
    yield from _one_of(
        "cluster", {key: value or None for key, value in cluster.items()}, WHERE_HOSTS_ARE
    )
    given = [name for name in WHERE_HOSTS_ARE if cluster.get(name)]
    remote = cluster.get("provider") == "hosts"
    if given and not remote:
        yield Problem(("cluster", given[0]), "needs `provider: hosts`")
    if remote and not given:
        yield Problem(("cluster",), f"needs the hosts: give {', '.join(WHERE_HOSTS_ARE)}")
    yield from _rented(cluster)


def _rented(cluster: Mapping[str, Any]) -> Iterator[Problem]:
    given = [name for name in RENTED_ONLY if cluster.get(name)]
    if cluster.get("provider") != "ec2":
        for name in given:
            yield Problem(("cluster", name), "needs `provider: ec2`")
        return
    least, nodes = cluster.get("min_nodes"), cluster.get("nodes")
    if isinstance(least, int) and isinstance(nodes, int) and least > nodes:
        yield Problem(("cluster", "min_nodes"), f"must be at most cluster.nodes, which is {nodes}")
    if cluster.get("subnet") and cluster.get("zones"):
        yield Problem(("cluster", "zones"), _BESIDE.format("cluster.subnet, which is in one zone"))
    image = cluster.get("image")
    if isinstance(image, str) and image.startswith("ami-") and not _IMAGE_ID.fullmatch(image):
        yield Problem(("cluster", "image"), f"is no image id: {image}; ids are ami- and hex digits")


def _runtime(data: Mapping[str, Any]) -> Iterator[Problem]:
    runtime, study = _section(data, "runtime"), _section(data, "study")
    varied = _section(study, "grid").get("runtime")
    said = [runtime.get("kind"), _section(study, "baseline").get("runtime")]
    said += varied if isinstance(varied, list | tuple) else []
    kinds = {item for item in said if isinstance(item, str)}
    for kind, keys in _OF_KINDS.items():
        for key in keys:
            if runtime.get(key) and kind not in kinds:
                yield Problem(("runtime", key), f"needs `kind: {kind}`")
    built = runtime.get("dockerfile")
    if "docker" in kinds and not built and not runtime.get("image"):
        yield Problem(("runtime",), "docker needs a `dockerfile`, or an `image` that there is")
    for key in ("context", "build_args", "build_on", "build_options"):
        if runtime.get(key) and not built and "docker" in kinds:
            yield Problem(("runtime", key), "needs a `dockerfile` to build from")


def _restarts(job: Mapping[str, Any]) -> Iterator[Problem]:
    restarts = job.get("max_restarts")
    if isinstance(restarts, int) and restarts > 0 and job.get("launcher") != "torchrun":
        yield Problem(
            ("job", "max_restarts"), "needs `launcher: torchrun`; direct ranks are not restarted"
        )


def _command(job: Mapping[str, Any]) -> Iterator[Problem]:
    command = job.get("command")
    if not isinstance(command, Sequence) or isinstance(command, str) or not command:
        return
    if isinstance(command[0], str) and "=" in command[0]:
        yield Problem(
            ("job", "command", 0), "must be a program; put variables for it under job.env"
        )


def _environment(section: str, env: Mapping[str, Any]) -> Iterator[Problem]:
    for name in env:
        if name in _SET_BY_LAUNCHER:
            yield Problem((section, "env", name), "is set for each rank and cannot be given")
        elif name == "MASTER_PORT":
            yield Problem((section, "env", name), "is given as job.master_port")


def _threads(data: Mapping[str, Any]) -> Iterator[Problem]:
    if _section(data, "job").get("threads") is None:
        return
    for section in ("job", "runtime"):
        if "OMP_NUM_THREADS" in _section(_section(data, section), "env"):
            yield Problem((section, "env", "OMP_NUM_THREADS"), _BESIDE.format("job.threads"))


def _grid(study: Mapping[str, Any], arguments: Mapping[str, Any]) -> Iterator[Problem]:
    grid = study.get("grid")
    if not isinstance(grid, Mapping):
        return
    if not grid:
        yield Problem(("study", "grid"), "is empty; take the line out to get the default grid")
    for axis, values in grid.items():
        if isinstance(axis, str) and isinstance(values, (list, tuple)):
            yield from _axis(axis, values, arguments)
    points = math.prod(len(item) for item in grid.values() if isinstance(item, (list, tuple)))
    if points > _LARGEST_GRID:
        yield Problem(
            ("study", "grid"), f"has {points} points; at most {_LARGEST_GRID} can be studied"
        )


def _axis(axis: str, values: Sequence[Any], arguments: Mapping[str, Any]) -> Iterator[Problem]:
    path = ("study", "grid", axis)
    if not values:
        yield Problem(path, "must not be empty")
    if axis in _NUMBERS:
        largest = None if axis.endswith("batch_size") else _LARGEST_AXIS_VALUE
        yield from _whole_numbers(path, values, largest)
        return
    if axis in AXES:
        for index, value in enumerate(values):
            yield from _choice((*path, index), axis, value)
        return
    for one, other in combinations(values, 2):
        # 1 and "1" and true: equal as values or as names of results, and yet not the same.
        if (one == other or str(one) == str(other)) and type(one) is not type(other):
            yield Problem(path, f"holds {one!r} and {other!r}, which cannot be told apart")
    near = get_close_matches(axis, AXES, n=1, cutoff=0.8)
    if near and axis not in arguments:
        yield Problem(
            path,
            f"did you mean {near[0]}? If it is an argument of your job, "
            f"give it a value in job.args as well",
        )


def _choice(path: Path, axis: str, value: Any) -> Iterator[Problem]:
    if not isinstance(value, str) or not value.strip():
        yield Problem(path, "must be text")
    elif axis in _CHOICES:
        section, key = _CHOICES[axis]
        words = get_args(section.model_fields[key].annotation)
        if value not in words:
            yield Problem(path, f"must be one of {', '.join(words)}, not {value}")


def _scaling(data: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield where batch sizes and what stays the same contradict each other."""
    study = _section(data, "study")
    grid, baseline = _section(study, "grid"), _section(study, "baseline")
    scaling = study.get("scaling")
    totals = [
        (("study", name, "global_batch_size"), section)
        for name, section in (("grid", grid), ("baseline", baseline))
        if section.get("global_batch_size") is not None
    ]
    for path, section in totals:
        if section.get("batch_size") is not None:
            yield Problem(path, _BESIDE.format(f"study.{path[1]}.batch_size"))
        if scaling == "weak":
            yield Problem(path, "is split among the processes: that is `scaling: strong`")
    if (scaling == "strong" or totals) and grid.get("batch_size") is not None:
        yield Problem(
            ("study", "grid", "batch_size"),
            "is the batch of each process, which strong scaling decides; "
            "write global_batch_size, the batch of all together",
        )


def _instance_types(data: Mapping[str, Any]) -> Iterator[Problem]:
    if _section(data, "cluster").get("provider") == "ec2":
        return
    study = _section(data, "study")
    for name in ("grid", "baseline"):
        if _section(study, name).get("instance_type") is not None:
            yield Problem(("study", name, "instance_type"), "needs `cluster.provider: ec2`")


def _whole_numbers(path: Path, values: Sequence[Any], largest: int | None) -> Iterator[Problem]:
    for index, value in enumerate(values):
        here = (*path, index)
        if isinstance(value, bool) or not isinstance(value, int):
            yield Problem(here, "must be a whole number")
        elif value < 1:
            yield Problem(here, f"must be at least 1, not {value}")
        elif largest is not None and value > largest:
            yield Problem(here, f"must be at most {largest}, not {value}")


def _baseline_arguments(
    study: Mapping[str, Any], arguments: Mapping[str, Any]
) -> Iterator[Problem]:
    known = [str(name) for name in (*_section(study, "grid"), *arguments) if name not in AXES]
    for name in _section(_section(study, "baseline"), "args"):
        path = ("study", "baseline", "args", name)
        if name in AXES:
            yield Problem(path, f"is an axis of its own; write study.baseline.{name}")
        elif name not in known:
            near = get_close_matches(str(name), known, n=1, cutoff=0.8)
            if near:
                yield Problem(
                    path, f"is no argument of the job or the grid; did you mean {near[0]}?"
                )


def _data(data: Mapping[str, Any], job: Mapping[str, Any]) -> Iterator[Problem]:
    ours = job.get("script") is None and job.get("command") is None
    dataset = data.get("dataset")
    if ours and dataset in _NEEDS_ROOT and data.get("root") is None:
        yield Problem(("data", "root"), f"is needed: the folder that holds the {dataset} images")
