"""Plans: what will be done, before anything is. `paceline plan` prints these values."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote

from paceline.model.command import Command, Secret
from paceline.model.ec2 import CloudPlan
from paceline.model.host import Host
from paceline.supervisor.job import Lookout

ArgValue = str | int | float | bool
# The axes of a study that are neither numbers of processes, nor a batch size, nor an argument.
TRAIT_AXES = ("instance_type", "runtime", "launcher")


@dataclass(frozen=True)
class Configuration:
    """One point of a study: how many processes, where, and with which arguments.

    `batch_size` is that of each process. `instance_type`, `runtime` and `launcher` are None where
    they are the spec's own.
    """

    nodes: int
    procs_per_node: int
    batch_size: int | None = None
    args: tuple[tuple[str, ArgValue], ...] = ()
    instance_type: str | None = None
    runtime: str | None = None
    launcher: str | None = None

    @property
    def world_size(self) -> int:
        """How many ranks run in total."""
        return self.nodes * self.procs_per_node

    @property
    def global_batch_size(self) -> int | None:
        """The batch of all processes together."""
        return None if self.batch_size is None else self.batch_size * self.world_size

    @property
    def traits(self) -> tuple[tuple[str, ArgValue], ...]:
        """What else makes it what it is, by name: its own type, runtime and launcher, arguments."""
        own = tuple(
            (name, value) for name in TRAIT_AXES if (value := getattr(self, name)) is not None
        )
        return (*own, *self.args)

    @property
    def label(self) -> str:
        """The name that result files bear, such as `nnode-2_nproc-4_batch_size-16`.

        What a file's name cannot hold, such as the slash of a path, is written as in a URL.
        """
        parts = [f"nnode-{self.nodes}", f"nproc-{self.procs_per_node}"]
        if self.batch_size is not None:
            parts.append(f"batch_size-{self.batch_size}")
        parts += [f"{name}-{quote(str(value), safe='')}" for name, value in self.traits]
        return "_".join(parts)

    @property
    def title(self) -> str:
        """The same for people: `2 nodes x 4 processes, batch 16`."""
        node = "node" if self.nodes == 1 else "nodes"
        process = "process" if self.procs_per_node == 1 else "processes"
        words = [f"{self.nodes} {node} x {self.procs_per_node} {process}"]
        if self.batch_size is not None:
            words.append(f"batch {self.batch_size}")
        words += [f"{_spoken(name)} {value}" for name, value in self.traits]
        return ", ".join(words)


def _spoken(name: str) -> str:
    return "on" if name == "instance_type" else name


@dataclass(frozen=True)
class ProcessPlan:
    """One process that a supervisor starts on a host, and the ranks that live in it."""

    name: str
    command: Command
    ranks: tuple[int, ...]


@dataclass(frozen=True)
class Container:
    """How the processes of a job are put into containers on one host.

    `engine` are the words that begin every line: `docker`, `sudo -n docker`, `podman`. Whatever
    is mounted, as `PATH` or `PATH:ro`, lies inside where it lies outside.
    """

    engine: tuple[str, ...]
    image: str
    mounts: tuple[str, ...] = ()
    options: tuple[str, ...] = ()


@dataclass(frozen=True)
class JobPlace:
    """Where a job lives on one host: its folder, and the Python that runs the supervisor there.

    `import_path` is what that Python needs on its path to find this package. `workdir` is where
    the ranks start, and `script` where their script lies; without them, where the spec says.
    `rank_python` is the ranks' own interpreter, if it is another: that of a venv, or the one in
    the image of their `container`.
    """

    job_folder: str
    python: str
    import_path: str | None = None
    workdir: str | None = None
    script: str | None = None
    rank_python: str | None = None
    container: Container | None = None


@dataclass(frozen=True)
class HostPlan:
    """What one host of a run does; without a `place` of its own, it has that of the run.

    `endings` are commands that end what its processes have started elsewhere, such as containers.
    """

    host: Host
    node_rank: int
    processes: tuple[ProcessPlan, ...]
    place: JobPlace | None = None
    endings: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True)
class Vigil:
    """How the supervisors of a run on several hosts watch over each other.

    They meet at a port of the master, and know each other by a secret of the run.
    """

    port: int
    secret: Secret


@dataclass(frozen=True)
class RunPlan:
    """One execution of a job, down to the exact command lines of every host.

    `job_folder` is where the job lives on each host, `python` the interpreter that runs the
    supervisor there, and `import_path` what it needs on its path to find this package. With a
    `lookout`, each supervisor looks out for the notice that its machine is taken back; with a
    `vigil`, for hosts that vanish.
    """

    run_id: str
    configuration: Configuration
    launcher: str
    hosts: tuple[HostPlan, ...]
    master_address: str
    master_port: int
    job_folder: str = ""
    python: str = ""
    import_path: str | None = None
    timeout_s: float | None = None
    hang_timeout_s: float | None = None
    notes: tuple[str, ...] = ()
    lookout: Lookout | None = None
    vigil: Vigil | None = None

    @property
    def world_size(self) -> int:
        """How many ranks run in total."""
        return self.configuration.world_size

    def place_on(self, host: Host) -> JobPlace:
        """Return where the run's job lives on one of its hosts."""
        own = next((item.place for item in self.hosts if item.host.name == host.name), None)
        return own or JobPlace(self.job_folder, self.python, self.import_path)


@dataclass(frozen=True)
class PlannedSample:
    """The n-th measurement of one configuration, from 1; its id is the same in every plan."""

    sample_id: str
    configuration: Configuration
    index: int


@dataclass(frozen=True)
class StudyPlan:
    """The samples of a study in the order in which they will be taken."""

    name: str
    baseline: Configuration
    configurations: tuple[Configuration, ...]
    samples: tuple[PlannedSample, ...]
    digest: str
    notes: tuple[str, ...] = ()


def digest_of(value: Mapping[str, object]) -> str:
    """Return a short fingerprint of plain data, the same on every machine and day."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


@dataclass(frozen=True)
class PlanReport:
    """Everything that `paceline plan` has to say about a spec."""

    study: StudyPlan | None
    runs: tuple[RunPlan, ...]
    notes: tuple[str, ...] = field(default_factory=tuple)
    cloud: CloudPlan | None = None
