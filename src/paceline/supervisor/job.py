"""The files between a supervisor and whoever started it: `job.json` in, `state.json` out.

A job's folder on its host:

    job.json          what to start (this module's `Job`)
    state.json        what has become of it (this module's `JobState`), replaced atomically
    events/           one `rank-R.jsonl` per rank; `PACELINE_EVENTS` points here
    logs/             one `PROCESS.log` per process: its stdout and stderr as they came
    out/              what the job makes: pictures, checkpoints, files; `PACELINE_OUT`
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

JOB_FILE = "job.json"
STATE_FILE = "state.json"
EVENTS_FOLDER = "events"
LOGS_FOLDER = "logs"
OUT_FOLDER = "out"
OUT_VARIABLE = "PACELINE_OUT"
JOB_VARIABLE = "PACELINE_JOB"


@dataclass(frozen=True)
class JobProcess:
    """One process to start; `ranks` are those that live in it."""

    name: str
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str | None = None
    ranks: tuple[int, ...] = ()


@dataclass(frozen=True)
class Job:
    """What one host does for one run."""

    job_id: str
    processes: tuple[JobProcess, ...]
    timeout_s: float | None = None
    grace_s: float = 10.0

    def to_json(self) -> str:
        """Return the text of `job.json`."""
        return json.dumps(asdict(self), indent=1)

    @classmethod
    def from_json(cls, text: str) -> Job:
        """Read the text of `job.json`."""
        data: dict[str, Any] = json.loads(text)
        processes = tuple(
            JobProcess(
                name=item["name"],
                argv=tuple(item["argv"]),
                env=item["env"],
                cwd=item["cwd"],
                ranks=tuple(item["ranks"]),
            )
            for item in data["processes"]
        )
        return cls(
            job_id=data["job_id"],
            processes=processes,
            timeout_s=data["timeout_s"],
            grace_s=data["grace_s"],
        )


@dataclass(frozen=True)
class ProcessState:
    """What has become of one process; a negative exit code is the signal that ended it."""

    pid: int | None = None
    exit_code: int | None = None
    started_at: float | None = None
    ended_at: float | None = None


@dataclass(frozen=True)
class FirstFailure:
    """The process that failed before any other, and the part of its log that says why."""

    process: str
    exit_code: int | None
    excerpt: str


@dataclass(frozen=True)
class JobState:
    """Where a job stands.

    `phase` is `starting`, `running` or `ended`; `outcome`, once ended, is `succeeded`,
    `failed`, `stopped` (on request), `timeout`, or `lost` (the supervisor is gone and left no
    outcome). `supervisor_start` tells our supervisor from a stranger that has its old pid.
    """

    job_id: str
    phase: str
    outcome: str | None = None
    supervisor_pid: int | None = None
    supervisor_start: str | None = None
    started_at: float | None = None
    ended_at: float | None = None
    wall_s: float | None = None
    processes: Mapping[str, ProcessState] = field(default_factory=dict)
    first_failure: FirstFailure | None = None

    def to_json(self) -> str:
        """Return the text of `state.json`."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> JobState:
        """Read the text of `state.json`."""
        return cls.from_dict(json.loads(text))

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> JobState:
        """Build a state from plain data."""
        processes = {name: ProcessState(**item) for name, item in data["processes"].items()}
        failure = data["first_failure"]
        return cls(
            **{
                **data,
                "processes": processes,
                "first_failure": FirstFailure(**failure) if failure else None,
            }
        )
