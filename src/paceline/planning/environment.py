"""The variables of the ranks: where they are, who else is there, and what they may use."""

from __future__ import annotations

import os

from paceline.events import EVENTS_VARIABLE
from paceline.model.command import Secret
from paceline.model.host import HostFacts
from paceline.model.plan import Configuration
from paceline.model.spec import Spec
from paceline.supervisor.job import EVENTS_FOLDER, OUT_FOLDER, OUT_VARIABLE

_LOOPBACK = "lo"


def rank_environment(
    configuration: Configuration,
    *,
    node_rank: int,
    local_rank: int,
    master_address: str,
    master_port: int,
) -> dict[str, str]:
    """Return what torch.distributed reads, under the names that torchrun gives it."""
    procs = configuration.procs_per_node
    return {
        "RANK": str(node_rank * procs + local_rank),
        "LOCAL_RANK": str(local_rank),
        "WORLD_SIZE": str(configuration.world_size),
        "LOCAL_WORLD_SIZE": str(procs),
        "NODE_RANK": str(node_rank),
        "GROUP_RANK": str(node_rank),
        "MASTER_ADDR": master_address,
        "MASTER_PORT": str(master_port),
    }


def host_environment(
    spec: Spec,
    configuration: Configuration,
    facts: HostFacts,
    *,
    job_folder: str,
    import_path: str | None,
    measured: bool,
) -> dict[str, str | Secret]:
    """Return what all processes on a host share; what the spec sets goes over it."""
    threads = spec.job.threads or max(1, facts.cores // configuration.procs_per_node)
    ours = {
        EVENTS_VARIABLE: f"{job_folder}/{EVENTS_FOLDER}",
        OUT_VARIABLE: f"{job_folder}/{OUT_FOLDER}",
        "OMP_NUM_THREADS": str(threads),
        # Output then reaches the log as it is written, and not when the process ends.
        "PYTHONUNBUFFERED": "1",
        **_interface(configuration, facts),
        **(_limits(spec) if measured and spec.job.program is None else {}),
    }
    given = {**spec.runtime.env, **spec.job.env}
    path = _python_path(import_path, given.get("PYTHONPATH"), facts)
    return {**ours, **given, **path}


def _interface(configuration: Configuration, facts: HostFacts) -> dict[str, str]:
    name = _LOOPBACK if configuration.nodes == 1 else facts.interface
    return {} if name is None else {"GLOO_SOCKET_IFNAME": name, "NCCL_SOCKET_IFNAME": name}


def _limits(spec: Spec) -> dict[str, str]:
    """Offer a script the length of a sample; it may heed it."""
    measurement = spec.measurement
    limits = {"PACELINE_WARMUP": str(measurement.warmup)}
    if measurement.total_iterations is not None:
        limits["PACELINE_ITERATIONS"] = str(measurement.total_iterations)
    if measurement.kind == "seconds":
        limits["PACELINE_SECONDS"] = str(measurement.amount)
    return limits


def _python_path(
    import_path: str | None, given: str | Secret | None, facts: HostFacts
) -> dict[str, str | Secret]:
    """Return PYTHONPATH with ours in front of what the spec or the host has there."""
    if import_path is None:
        return {}
    theirs = facts.environment.get("PYTHONPATH") if given is None else _opened(given)
    return {"PYTHONPATH": os.pathsep.join(part for part in (import_path, theirs) if part)}


def _opened(value: str | Secret) -> str:
    return value.value if isinstance(value, Secret) else value
