"""The launcher `mpirun`: Open MPI starts all ranks from the master."""

from __future__ import annotations

import json
from collections.abc import Sequence

from paceline.errors import PlanError
from paceline.model.command import Command, Secret
from paceline.model.host import Host
from paceline.model.plan import HostPlan, ProcessPlan
from paceline.mpi import ARGV_VARIABLE, PORTS_VARIABLE, SECRET_VARIABLE, WORKDIR_VARIABLE
from paceline.planning.launch import Launch

# Open MPI minds being started by root; on rented machines that is usual.
_ENVIRONMENT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
}


def mpirun(launch: Launch) -> tuple[HostPlan, ...]:
    """Start one mpirun on the master; the other hosts wait for its call."""
    hosts = launch.cluster.hosts[: launch.configuration.nodes]
    if len(hosts) > 1 and any(":" in host.peer_address for host in hosts):
        raise PlanError("mpirun needs IPv4 addresses", hint="give each host a private_address")
    _require_slots(hosts, launch.configuration.procs_per_node)
    waiting = tuple(
        HostPlan(host, node_rank, (_waiting(launch, node_rank),))
        for node_rank, host in enumerate(hosts)
        if node_rank > 0
    )
    return (HostPlan(hosts[0], 0, (_mpirun(launch),)), *waiting)


def _require_slots(hosts: Sequence[Host], procs: int) -> None:
    for host in hosts:
        if host.slots is not None and host.slots < procs:
            slots = "1 slot" if host.slots == 1 else f"{host.slots} slots"
            raise PlanError(
                f"it has {slots}, and {procs} ranks are to start there",
                host=host.name,
                hint="lower job.procs_per_node, or raise `slots` in the list of hosts",
            )


def _mpirun(launch: Launch) -> ProcessPlan:
    configuration = launch.configuration
    alone = configuration.nodes == 1
    hosts = launch.cluster.hosts[: configuration.nodes]
    procs = configuration.procs_per_node
    addresses = ["127.0.0.1"] if alone else [host.peer_address for host in hosts]
    words = ["mpirun", "-np", str(configuration.world_size)]
    words += ["--host", ",".join(f"{address}:{procs}" for address in addresses)]
    words += ["--map-by", f"ppr:{procs}:node", "--bind-to", "none"]
    python = launch.python(0)
    if not alone:
        # Attached, so that the daemons stay with the supervisors that started them.
        words += ["--leave-session-attached"]
        words += ["--mca", "plm_rsh_agent", f"{python} -m paceline.mpi call"]
        words += ["--mca", "plm_rsh_no_tree_spawn", "1"]
        interface = launch.facts[0].interface
        if interface is not None and all(item.interface == interface for item in launch.facts):
            words += ["--mca", "oob_tcp_if_include", interface]
            words += ["--mca", "btl_tcp_if_include", interface]
    ports = {host.peer_address: _port(launch, rank) for rank, host in enumerate(hosts) if rank}
    env = {**_environment(launch, 0), PORTS_VARIABLE: json.dumps(ports)}
    command = Command((*words, python, "-m", "paceline.mpi", "rank"), env, launch.workdir(0))
    return ProcessPlan("mpirun", command, tuple(range(configuration.world_size)))


def _waiting(launch: Launch, node_rank: int) -> ProcessPlan:
    argv = (launch.python(node_rank), "-m", "paceline.mpi", "serve", str(_port(launch, node_rank)))
    command = Command(argv, _environment(launch, node_rank), launch.workdir(node_rank))
    # Its ranks live under it, but it is mpirun that speaks for them.
    return ProcessPlan(f"mpi-daemon-{node_rank}", command, ())


def _environment(launch: Launch, node_rank: int) -> dict[str, str | Secret]:
    argv = launch.payload(node_rank).argv(launch.python(node_rank))
    return {
        **_ENVIRONMENT,
        **launch.environment(node_rank),
        "MASTER_ADDR": launch.master_address,
        "MASTER_PORT": str(launch.master_port),
        "NODE_RANK": str(node_rank),
        ARGV_VARIABLE: json.dumps(argv),
        WORKDIR_VARIABLE: launch.workdir(node_rank) or "",
        SECRET_VARIABLE: Secret(launch.secret),
    }


def _port(launch: Launch, node_rank: int) -> int:
    port = launch.facts[node_rank].free_port
    if port is None:
        raise PlanError("no free port was found", hint="is the host full of listening programs?")
    return port
