"""The ports: what the use cases need from the world, as small Protocols.

Adapters live in `providers`, `transports` and `store`; `api` wires them together. A fake of a
port is a real class that passes the same contract suite as the adapters (`tests/contract`).
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from paceline.model.calibration import Calibration
from paceline.model.command import Command, Completed, Secret
from paceline.model.ec2 import Answer, ClusterKey, Request
from paceline.model.host import Cluster, Host
from paceline.model.ledger import ClusterEntry, Entry
from paceline.model.live import RunNow
from paceline.model.plan import RunPlan, StudyPlan
from paceline.model.record import RunRecord, RunState, StudyRecord
from paceline.model.summary import Sample, StudyProgress

LaterInput = Callable[[], Awaitable[bytes]]
"""Called once; what it returns in the end is all the input of a command."""

OnLine = Callable[[str, str], None]
"""Called with `stdout` or `stderr`, and a line of it without its end."""


class Transport(Protocol):
    """One host, reached: run, put, get, stream, tunnel. Every call has a time limit."""

    @property
    def host(self) -> Host:
        """The host at the other end."""
        ...

    async def run(
        self, command: Command, *, timeout_s: float | None = 60.0, on_line: OnLine | None = None
    ) -> Completed:
        """Run a command to its end. A non-zero exit is a result; not being able to is an error.

        `on_line` is told every line as it comes.
        """
        ...

    def stream(
        self, command: Command, *, stdin: LaterInput | None = None
    ) -> AsyncGenerator[str, None]:
        """Run a command and yield the lines of its output as they come; end it when closed.

        `stdin` is asked for the command's input while the command starts already.
        """
        ...

    async def put(self, source: Path, target: str, *, timeout_s: float | None = 600.0) -> None:
        """Copy a file or a folder to the host."""
        ...

    async def put_bytes(
        self, data: bytes, target: str, *, mode: int = 0o644, timeout_s: float | None = 60.0
    ) -> None:
        """Write a file on the host, atomically, making its folder."""
        ...

    async def get(self, source: str, target: Path, *, timeout_s: float | None = 600.0) -> None:
        """Copy a file or a folder from the host."""
        ...

    async def tunnel(self, port: int) -> int:
        """Return a port on our own loopback that leads to `port` on the host's loopback."""
        ...

    async def close(self) -> None:
        """Let go of the host; calling it twice is harmless."""
        ...


class Provider(Protocol):
    """Who supplies hosts."""

    @property
    def name(self) -> str:
        """The word that the spec uses for it."""
        ...

    async def cluster(self) -> Cluster:
        """Return the hosts, in the order of their node ranks."""
        ...

    async def connect(self, host: Host) -> Transport:
        """Open the way to one host."""
        ...


class Cloud(Protocol):
    """The API of one region of a cloud: one request in, one answer out, or an error of ours."""

    @property
    def region(self) -> str:
        """The region that is spoken to."""
        ...

    async def call(self, request: Request) -> Answer:
        """Carry a request out; pages are put together. CloudError says what was refused."""
        ...


class Ledger(Protocol):
    """The durable record of what we rent: written before each call, and after it."""

    def lock(self, key: ClusterKey) -> AbstractContextManager[None]:
        """Keep others from a cluster while inside; Conflict if one is at work on it."""
        ...

    def clusters(self) -> tuple[ClusterEntry, ...]:
        """Return the clusters that are not gone, newest first."""
        ...

    def cluster(self, key: ClusterKey) -> ClusterEntry | None:
        """Return a cluster that is not gone; None if there is none of that key."""
        ...

    def write_cluster(self, entry: ClusterEntry) -> None:
        """Write a cluster down, over what is there of it."""
        ...

    def entries(self, key: ClusterKey) -> tuple[Entry, ...]:
        """Return what was written down for a cluster, the first first."""
        ...

    def write(self, *entries: Entry) -> None:
        """Write entries down, each over that of the same id: all of them or none."""
        ...


@dataclass(frozen=True)
class KeyPair:
    """An ed25519 key; the private half is a file's content that nobody else may read."""

    private: Secret
    public: str


@dataclass(frozen=True)
class HostPin:
    """The one host key that is accepted of a host, and while it changes also the next one."""

    now: str
    coming: str | None = None
    settled: bool = False


class Keyring(Protocol):
    """The keys of our clusters, in files that only their owner can read."""

    def pair(self, key: ClusterKey, name: str) -> KeyPair:
        """Return a key of a cluster; it is made when it is first asked for."""
        ...

    def path(self, key: ClusterKey, name: str) -> Path:
        """Return where the private half lies, or would lie."""
        ...

    def known(self, key: ClusterKey, name: str) -> bool:
        """Tell whether a cluster has this key here."""
        ...

    def pins(self, key: ClusterKey) -> Mapping[str, HostPin]:
        """Return the host keys that are known of a cluster's hosts, by instance id."""
        ...

    def write_pin(self, key: ClusterKey, instance_id: str, pin: HostPin) -> None:
        """Write down what is known of one host's key, over what is there."""
        ...

    def forget(self, key: ClusterKey) -> None:
        """Remove a cluster's keys; having none is no error."""
        ...


class RentalObserver(Protocol):
    """Who watches while hosts are rented or given back: a terminal, a log, or nobody."""

    def step(self, text: str) -> None:
        """Called with what is done next, in words."""
        ...

    def progress(self, done: int, total: int, what: str) -> None:
        """Called when so many of so many hosts or things are ready or gone."""
        ...


class RunStore(Protocol):
    """The durable record of runs and studies; written before and after each thing that happens."""

    def create_run(self, record: RunRecord, plan: RunPlan) -> None:
        """Write down a run before it starts."""
        ...

    def update_run(self, record: RunRecord) -> None:
        """Write down what has become of a run."""
        ...

    def plan_of(self, record: RunRecord) -> RunPlan:
        """Return the plan that a run was created with."""
        ...

    def run(self, run_id: str) -> RunRecord:
        """Return a run by its id or an unambiguous beginning of it; else NotFound."""
        ...

    def runs(
        self, *, study: str | None = None, states: Sequence[RunState] = ()
    ) -> tuple[RunRecord, ...]:
        """Return the runs that are known, newest first."""
        ...

    def open_study(
        self, plan: StudyPlan, spec: Mapping[str, object], provenance: Mapping[str, object]
    ) -> StudyRecord:
        """Create the study, or return it where it exists with the same digest; else Conflict."""
        ...

    def study(self, name: str) -> StudyRecord:
        """Return a study by its name or folder; else NotFound."""
        ...

    def make_way(self, name: str, *, rehearsed: bool) -> tuple[tuple[Path, Path], ...]:
        """Move a study's results of the other kind aside; return what went where.

        Rehearsed results make way for real ones, and real ones for rehearsed; real ones that
        once made way come back.
        """
        ...

    def study_plan(self, study: StudyRecord) -> StudyPlan:
        """Return the plan that a study was last opened with."""
        ...

    def studies(self) -> tuple[StudyRecord, ...]:
        """Return the studies that are known, newest first."""
        ...

    def folder_for_run(self, run_id: str, study: StudyRecord | None = None) -> Path:
        """Return the folder that a run of this id will have; nothing is created."""
        ...

    def reread(self, record: RunRecord) -> RunRecord:
        """Return a run as it is written down now."""
        ...

    def lock(self, what: RunRecord | str) -> AbstractContextManager[None]:
        """Keep others from a run, or a study of a name, while inside; Conflict if one is there."""
        ...

    def holder(self, what: RunRecord | str) -> int | None:
        """Return the process on this machine that holds a lock; None if nobody does."""
        ...

    def write_result(self, study: StudyRecord, name: str, data: bytes) -> Path:
        """Write a result file of a study, atomically."""
        ...


class Calibrations(Protocol):
    """What was measured of hosts, kept from one command to the next."""

    def known(self, key: str) -> Calibration | None:
        """Return what was kept under a key; None where there is nothing."""
        ...

    def keep(self, key: str, calibration: Calibration) -> None:
        """Keep it, in the place of what was there."""
        ...


class Clock(Protocol):
    """The time, so that tests need not wait for it."""

    def now(self) -> float:
        """Unix seconds."""
        ...

    def monotonic(self) -> float:
        """Seconds that never go back."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        ...


class StudyObserver(Protocol):
    """Who watches a study: the progress display, or nobody."""

    def planned(self, plan: StudyPlan, remaining: int) -> None:
        """Called before the first sample, with the number of samples still to be taken."""
        ...

    def started(self, record: RunRecord) -> None:
        """Called when a run has started."""
        ...

    def progressed(self, record: RunRecord, now: RunNow) -> None:
        """Called as the ranks report, with how the run stands."""
        ...

    def sampled(self, sample: Sample, progress: StudyProgress) -> None:
        """Called after each sample, with the findings so far."""
        ...
