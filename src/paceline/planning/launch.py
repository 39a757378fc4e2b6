"""Launchers: who starts the ranks on a host, as commands.

A launcher is a function from a `Launch` to what each host does; `planning/launchers.py` names
them all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from paceline.model.command import Command, Secret
from paceline.model.host import Cluster, HostFacts
from paceline.model.plan import Configuration, HostPlan, JobPlace, ProcessPlan
from paceline.model.spec import Spec
from paceline.planning.environment import host_environment, rank_environment
from paceline.planning.payload import Payload, payload_of

# A host that does not turn up is named in minutes, and not after torchrun's own ten.
_RENDEZVOUS_TIMEOUT_S = 120


@dataclass(frozen=True)
class Launch:
    """All that a launcher needs to know.

    `facts` and `places` are those of the hosts in use, in order. `secret` is known to the hosts of
    this run alone.
    """

    spec: Spec
    configuration: Configuration
    cluster: Cluster
    facts: tuple[HostFacts, ...]
    places: tuple[JobPlace, ...]
    master_address: str
    master_port: int
    measured: bool
    secret: str = ""

    def payload(self, node_rank: int) -> Payload:
        """Return what every rank of a host executes."""
        place = self.places[node_rank]
        return payload_of(
            self.spec,
            self.configuration,
            job_folder=place.job_folder,
            measured=self.measured,
            script=place.script,
        )

    def python(self, node_rank: int) -> str:
        """Return the interpreter of the ranks on a host."""
        place = self.places[node_rank]
        return place.rank_python or self.spec.runtime.python or place.python

    def workdir(self, node_rank: int) -> str | None:
        """Return the folder in which the ranks of a host start."""
        return self.places[node_rank].workdir or self.spec.job.workdir

    def environment(self, node_rank: int) -> dict[str, str | Secret]:
        """Return the variables that all processes of a host share."""
        return host_environment(
            self.spec,
            self.configuration,
            self.facts[node_rank],
            job_folder=self.places[node_rank].job_folder,
            import_path=self.places[node_rank].import_path,
            measured=self.measured,
        )


class Launcher(Protocol):
    """Turns a launch into what each host does."""

    def __call__(self, launch: Launch) -> tuple[HostPlan, ...]:
        """Return one plan per host in use, the master's first."""
        ...


def direct(launch: Launch) -> tuple[HostPlan, ...]:
    """Start every rank by itself, with plain environment variables."""
    procs = launch.configuration.procs_per_node

    def process(node_rank: int, local_rank: int) -> ProcessPlan:
        rank = node_rank * procs + local_rank
        place = rank_environment(
            launch.configuration,
            node_rank=node_rank,
            local_rank=local_rank,
            master_address=launch.master_address,
            master_port=launch.master_port,
        )
        env = {**launch.environment(node_rank), **place}
        argv = launch.payload(node_rank).argv(launch.python(node_rank))
        command = Command(argv=argv, env=env, cwd=launch.workdir(node_rank))
        return ProcessPlan(name=f"rank-{rank}", command=command, ranks=(rank,))

    return tuple(
        HostPlan(host, node_rank, tuple(process(node_rank, local) for local in range(procs)))
        for node_rank, host in enumerate(launch.cluster.hosts[: launch.configuration.nodes])
    )


def torchrun(launch: Launch) -> tuple[HostPlan, ...]:
    """Start one torchrun on every host; it starts the ranks there."""
    procs = launch.configuration.procs_per_node
    group_ranks = _group_ranks(launch)

    def process(node_rank: int) -> ProcessPlan:
        command = Command(
            argv=(*_torchrun_words(launch, node_rank), *launch.payload(node_rank).torchrun_words()),
            env={
                **launch.environment(node_rank),
                "NODE_RANK": str(node_rank),
                **_store_of_each_attempt(launch),
            },
            cwd=launch.workdir(node_rank),
        )
        first = group_ranks[node_rank] * procs
        ranks = tuple(range(first, first + procs))
        return ProcessPlan(name=f"torchrun-{node_rank}", command=command, ranks=ranks)

    return tuple(
        HostPlan(host, node_rank, (process(node_rank),))
        for node_rank, host in enumerate(launch.cluster.hosts[: launch.configuration.nodes])
    )


def _store_of_each_attempt(launch: Launch) -> dict[str, str]:
    """Return what makes torchrun give each attempt a store of its own.

    In one that it shares between attempts, gloo may find the address of a rank that is dead.
    Our own trainers part the attempts themselves; a static rendezvous knows no such setting.
    """
    restarts = launch.spec.job.max_restarts and rendezvous_of(launch.spec) == "c10d"
    return {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"} if restarts else {}


def rendezvous_of(spec: Spec) -> str:
    """Return how torchrun's hosts meet: as the spec says, else as its restarts need it."""
    return spec.job.rendezvous or ("c10d" if spec.job.max_restarts else "static")


def _torchrun_words(launch: Launch, node_rank: int) -> tuple[str, ...]:
    """Return torchrun's own part of the line.

    The log folder keeps it from leaving one of its own in /tmp.
    """
    configuration, job = launch.configuration, launch.spec.job
    words = [launch.python(node_rank), "-m", "torch.distributed.run"]
    words += ["--nnodes", str(configuration.nodes)]
    static = rendezvous_of(launch.spec) == "static"
    words += ["--node-rank", str(node_rank)] if static else []
    words += ["--nproc-per-node", str(configuration.procs_per_node)]
    words += _meet_static(launch) if static else _meet_c10d(launch, node_rank)
    if job.max_restarts:
        words += ["--max-restarts", str(job.max_restarts)]
    return (*words, "--log-dir", f"{launch.places[node_rank].job_folder}/torchrun")


def _meet_static(launch: Launch) -> list[str]:
    """Return the words of torchrun's default: ranks are numbered by node rank."""
    words = ["--master-addr", launch.master_address, "--master-port", str(launch.master_port)]
    if launch.configuration.nodes > 1:
        words += ["--rdzv-conf", f"timeout={_RENDEZVOUS_TIMEOUT_S}"]
    return words


def _meet_c10d(launch: Launch, node_rank: int) -> list[str]:
    """Return the words of the rendezvous that gathers all hosts again after a failure.

    It would guess by names which host keeps the store, and which address is whose.
    """
    keeps_store = int(node_rank == 0)
    return [
        *("--rdzv-backend", "c10d"),
        *("--rdzv-endpoint", f"{launch.master_address}:{launch.master_port}"),
        *("--rdzv-id", f"paceline-{launch.master_port}"),
        *("--rdzv-conf", f"join_timeout={_RENDEZVOUS_TIMEOUT_S},is_host={keeps_store}"),
        *("--local-addr", _own_address(launch, node_rank)),
    ]


def _own_address(launch: Launch, node_rank: int) -> str:
    alone = launch.configuration.nodes == 1
    return launch.master_address if alone else launch.cluster.hosts[node_rank].peer_address


def _group_ranks(launch: Launch) -> list[int]:
    """Return which part of the ranks each host has: c10d orders the hosts by their addresses."""
    places = range(launch.configuration.nodes)
    if rendezvous_of(launch.spec) != "c10d":
        return list(places)
    order = sorted(places, key=lambda node_rank: _own_address(launch, node_rank))
    return [order.index(node_rank) for node_rank in places]
