"""Records and plans as plain JSON, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from paceline.model.command import REDACTED, Command, Secret
from paceline.model.host import Host, SshAccess
from paceline.model.plan import (
    TRAIT_AXES,
    Configuration,
    Container,
    HostPlan,
    JobPlace,
    PlannedSample,
    ProcessPlan,
    RunPlan,
    StudyPlan,
    Vigil,
)
from paceline.model.record import Failure, RunRecord, RunState, StudyRecord
from paceline.supervisor.job import Lookout


def configuration_to_plain(configuration: Configuration) -> dict[str, Any]:
    """Return a configuration as JSON data."""
    return {**asdict(configuration), "args": dict(configuration.args)}


def configuration_from_plain(data: Mapping[str, Any]) -> Configuration:
    """Read a configuration from JSON data."""
    traits = {name: data.get(name) for name in TRAIT_AXES}
    return Configuration(
        nodes=data["nodes"],
        procs_per_node=data["procs_per_node"],
        batch_size=data["batch_size"],
        args=tuple(data["args"].items()),
        **traits,
    )


def run_to_plain(record: RunRecord) -> dict[str, Any]:
    """Return a run record as JSON data."""
    plain = asdict(record)
    plain["state"] = record.state.value
    plain["folder"] = str(record.folder)
    plain["configuration"] = configuration_to_plain(record.configuration)
    plain["provenance"] = dict(record.provenance)
    return plain


def run_from_plain(data: Mapping[str, Any], folder: Path) -> RunRecord:
    """Read a run record; its folder is where it was found, so that folders may be moved."""
    failure = data["failure"]
    known = {item.name for item in fields(RunRecord)}
    return RunRecord(
        **{
            **{name: value for name, value in data.items() if name in known},
            "state": RunState(data["state"]),
            "folder": folder,
            "configuration": configuration_from_plain(data["configuration"]),
            "failure": Failure(**failure) if failure else None,
            "hosts": tuple(data["hosts"]),
        }
    )


def study_to_plain(record: StudyRecord) -> dict[str, Any]:
    """Return a study record as JSON data."""
    return {**asdict(record), "folder": str(record.folder)}


def study_from_plain(data: Mapping[str, Any], folder: Path) -> StudyRecord:
    """Read a study record from JSON data."""
    known = {item.name for item in fields(StudyRecord)}
    return StudyRecord(
        **{**{name: value for name, value in data.items() if name in known}, "folder": folder}
    )


def plan_to_plain(plan: RunPlan) -> dict[str, Any]:
    """Return a run plan as JSON data, with its secrets hidden."""
    plain = {
        name: getattr(plan, name)
        for name in (
            "run_id", "launcher", "master_address", "master_port",
            "job_folder", "python", "import_path", "timeout_s", "hang_timeout_s",
        )
    }  # fmt: skip
    return {
        **plain,
        "configuration": configuration_to_plain(plan.configuration),
        "notes": list(plan.notes),
        "lookout": None if plan.lookout is None else asdict(plan.lookout),
        "vigil": None if plan.vigil is None else {"port": plan.vigil.port, "secret": REDACTED},
        "hosts": [_host_plan_to_plain(host) for host in plan.hosts],
    }


def _host_plan_to_plain(plan: HostPlan) -> dict[str, Any]:
    return {
        "host": asdict(plan.host),
        "node_rank": plan.node_rank,
        "place": None if plan.place is None else asdict(plan.place),
        "endings": [list(words) for words in plan.endings],
        "processes": [
            {
                "name": process.name,
                "ranks": list(process.ranks),
                "argv": list(process.command.argv),
                "env": {
                    name: REDACTED if isinstance(value, Secret) else value
                    for name, value in process.command.env.items()
                },
                "cwd": process.command.cwd,
            }
            for process in plan.processes
        ],
    }


def plan_from_plain(data: Mapping[str, Any]) -> RunPlan:
    """Read a run plan from JSON data; secrets stay hidden, so it can be shown but not started."""
    lookout, vigil = data.get("lookout"), data.get("vigil")
    return RunPlan(
        **{
            **data,
            "configuration": configuration_from_plain(data["configuration"]),
            "notes": tuple(data["notes"]),
            "lookout": Lookout(**lookout) if lookout else None,
            "vigil": Vigil(vigil["port"], Secret(REDACTED)) if vigil else None,
            "hosts": tuple(_host_plan_from_plain(host) for host in data["hosts"]),
        }
    )


def _host_plan_from_plain(data: Mapping[str, Any]) -> HostPlan:
    processes = tuple(
        ProcessPlan(
            name=item["name"],
            command=Command(argv=tuple(item["argv"]), env=item["env"], cwd=item["cwd"]),
            ranks=tuple(item["ranks"]),
        )
        for item in data["processes"]
    )
    return HostPlan(
        host=_host_from_plain(data["host"]),
        node_rank=data["node_rank"],
        processes=processes,
        place=_place_from_plain(data.get("place")),
        endings=tuple(tuple(words) for words in data.get("endings") or ()),
    )


def _place_from_plain(data: Mapping[str, Any] | None) -> JobPlace | None:
    if not data:
        return None
    container = data.get("container")
    if container:
        parts = {name: tuple(container[name]) for name in ("engine", "mounts", "options")}
        container = Container(**{**container, **parts})
    return JobPlace(**{**data, "container": container or None})


def _host_from_plain(data: Mapping[str, Any]) -> Host:
    access = data.get("ssh")
    return Host(**{**data, "ssh": SshAccess(**access) if access else None})


def study_plan_to_plain(plan: StudyPlan) -> dict[str, Any]:
    """Return a study plan as JSON data."""
    return {
        "name": plan.name,
        "baseline": configuration_to_plain(plan.baseline),
        "configurations": [configuration_to_plain(item) for item in plan.configurations],
        "samples": [
            {
                "sample_id": item.sample_id,
                "configuration": configuration_to_plain(item.configuration),
                "index": item.index,
            }
            for item in plan.samples
        ],
        "digest": plan.digest,
        "notes": list(plan.notes),
    }


def study_plan_from_plain(data: Mapping[str, Any]) -> StudyPlan:
    """Read a study plan from JSON data."""
    return StudyPlan(
        name=data["name"],
        baseline=configuration_from_plain(data["baseline"]),
        configurations=tuple(configuration_from_plain(item) for item in data["configurations"]),
        samples=tuple(
            PlannedSample(
                sample_id=item["sample_id"],
                configuration=configuration_from_plain(item["configuration"]),
                index=item["index"],
            )
            for item in data["samples"]
        ),
        digest=data["digest"],
        notes=tuple(data["notes"]),
    )
