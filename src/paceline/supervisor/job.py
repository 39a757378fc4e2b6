"""The files between a supervisor and whoever started it: `job.json` in, `state.json` out.

A job's folder on its host:

    job.json          what to start (this module's `Job`)
    state.json        what has become of it (this module's `JobState`), replaced atomically
    events/           one `rank-R.jsonl` per rank; `PACELINE_EVENTS` points here
    logs/             one `PROCESS.log` per process: its stdout and stderr as they came
    out/              what the job makes: pictures, checkpoints, files; `PACELINE_OUT`

Three more files are the supervisor's own: `supervisor.lock` is locked for as long as anybody
watches over the job, `supervisor.log` holds what the supervisor has to say of itself, and
`state.reserve` keeps room for the last state on a disk that fills up.

A folder serves one job, once.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields

# A start on a host is waited for: `typing` alone would cost it 2 ms.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

JOB_FILE = "job.json"
STATE_FILE = "state.json"
EVENTS_FOLDER = "events"
LOGS_FOLDER = "logs"
OUT_FOLDER = "out"
OUT_VARIABLE = "PACELINE_OUT"
JOB_VARIABLE = "PACELINE_JOB"
# By it, a Python tells where it is when it is aborted.
STACKS_VARIABLE = "PYTHONFAULTHANDLER"
DEFAULT_GRACE_S = 10.0
METADATA_ADDRESS = "http://169.254.169.254"

STARTING = "starting"
RUNNING = "running"
ENDED = "ended"

SUCCEEDED = "succeeded"
FAILED = "failed"
STOPPED = "stopped"
TIMEOUT = "timeout"
LOST = "lost"
HUNG = "hung"
INTERRUPTED = "interrupted"


@dataclass(frozen=True)
class JobProcess:
    """One process to start; `ranks` are those that live in it."""

    name: str
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str | None = None
    ranks: tuple[int, ...] = ()


@dataclass(frozen=True)
class Lookout:
    """Where a spot machine learns that it will be taken back, and how often to ask.

    After a notice the ranks have `wind_down_s` for a checkpoint; then the job ends, while there
    is still time to bring home what it has written.
    """

    address: str = METADATA_ADDRESS
    every_s: float = 5.0
    wind_down_s: float = 30.0


@dataclass(frozen=True)
class Notice:
    """What the machine was told: what will be done with it, when, and when that was seen."""

    action: str
    at: float
    seen_at: float


@dataclass(frozen=True)
class Companions:
    """The hosts of a job whose supervisors watch over each other.

    `host` is our own name. The first of all `hosts` listens at `address` and `port`; who knows
    the `secret` belongs to them.
    """

    host: str
    hosts: tuple[str, ...]
    address: str
    port: int
    secret: str

    @property
    def first(self) -> str:
        """The host that listens."""
        return self.hosts[0]

    @property
    def others(self) -> tuple[str, ...]:
        """The hosts that call it."""
        return self.hosts[1:]


@dataclass(frozen=True)
class Job:
    """What one host does for one run.

    `endings` are commands that end what the processes have started elsewhere, out of the
    supervisor's reach: the containers of an engine. `mark` is a file that is touched while the
    job runs, so that an idle machine is told from one at work.
    """

    job_id: str
    processes: tuple[JobProcess, ...]
    timeout_s: float | None = None
    grace_s: float = DEFAULT_GRACE_S
    endings: tuple[tuple[str, ...], ...] = ()
    hang_timeout_s: float | None = None
    lookout: Lookout | None = None
    mark: str | None = None
    companions: Companions | None = None

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
                env=item.get("env") or {},
                cwd=item.get("cwd"),
                ranks=tuple(item.get("ranks") or ()),
            )
            for item in data["processes"]
        )
        lookout = data.get("lookout")
        return cls(
            job_id=data["job_id"],
            processes=processes,
            timeout_s=data.get("timeout_s"),
            grace_s=data.get("grace_s", DEFAULT_GRACE_S),
            endings=tuple(tuple(words) for words in data.get("endings") or ()),
            hang_timeout_s=data.get("hang_timeout_s"),
            lookout=Lookout(**_known(Lookout, lookout)) if lookout else None,
            mark=data.get("mark"),
            companions=_companions(data.get("companions")),
        )


def _companions(data: dict[str, Any] | None) -> Companions | None:
    if not data:
        return None
    return Companions(**{**_known(Companions, data), "hosts": tuple(data["hosts"])})


@dataclass(frozen=True)
class ProcessState:
    """What has become of one process; a negative exit code is the signal that ended it."""

    pid: int | None = None
    exit_code: int | None = None
    started_at: float | None = None
    ended_at: float | None = None


@dataclass(frozen=True)
class FirstFailure:
    """The process that failed before any other, and the part of its log that says why.

    `reason` is one sentence; `exit_code` is None for a process that could not be started, or that
    hangs. `waits` says of a hang that the ranks of this host only wait for those of others.
    If it was no process but another host that was lost, `host` is its name, and `at` when it was
    heard last (Unix time).
    """

    process: str
    exit_code: int | None
    excerpt: str
    reason: str = ""
    waits: bool = False
    host: str | None = None
    at: float | None = None


@dataclass(frozen=True)
class JobState:
    """Where a job stands.

    `phase` is `starting`, `running` or `ended`; `outcome`, once ended, is `succeeded`,
    `failed`, `stopped` (on request), `timeout`, `hung` (its ranks got nowhere), `interrupted` (the
    machine is taken back, as its `notice` says), or `lost` (the supervisor is gone and left no
    outcome). `supervisor_start` tells our supervisor from a stranger that has its old pid.
    `ended_at` is when nothing of the job was left; `wall_s` is the time from the first start to
    the last end among the job's processes. `detail` says in one sentence why the job ended.
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
    detail: str | None = None
    notice: Notice | None = None

    @property
    def ended(self) -> bool:
        """Whether nothing more will happen."""
        return self.phase == ENDED

    def to_json(self) -> str:
        """Return the text of `state.json`."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> JobState:
        """Read the text of `state.json`."""
        return cls.from_dict(json.loads(text))

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> JobState:
        """Build a state from plain data; what a newer version has added is passed over."""
        processes = data.get("processes") or {}
        failure = data.get("first_failure")
        notice = data.get("notice")
        return cls(
            **{
                **_known(cls, data),
                "processes": {
                    name: ProcessState(**_known(ProcessState, item))
                    for name, item in processes.items()
                },
                "first_failure": FirstFailure(**_known(FirstFailure, failure)) if failure else None,
                "notice": Notice(**_known(Notice, notice)) if notice else None,
            }
        )


def _known(noun: type, data: dict[str, Any]) -> dict[str, Any]:
    names = {item.name for item in fields(noun)}
    return {name: value for name, value in data.items() if name in names}
