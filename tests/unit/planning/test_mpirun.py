"""The launcher mpirun as data: one line on the master, and hosts that wait for its call."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from paceline.errors import PlanError
from paceline.model.command import Secret
from paceline.model.host import Cluster, Host, HostFacts
from paceline.model.plan import Configuration, JobPlace, RunPlan
from paceline.model.spec import load_spec
from paceline.planning.run import plan_run

ALPHA = Host("alpha", "192.0.2.1", "10.0.0.1")
BETA = Host("beta", "192.0.2.2", "10.0.0.2")


def planned(nodes: int, beta: Host = BETA) -> RunPlan:
    """Return the plan of a command with two processes per host."""
    facts = {
        name: HostFacts(name, cores=4, interface="ens5", free_port=20001 + rank)
        for rank, name in enumerate(("alpha", "beta"))
    }
    return plan_run(
        load_spec({"job": {"launcher": "mpirun", "command": ["work"], "workdir": "/"}}),
        Configuration(nodes, 2),
        Cluster("c", "hosts", (ALPHA, beta)),
        facts,
        "run",
        job_folder="/jobs/run",
        python="python3",
        import_path=None,
        port=29999,
        measured=False,
        places={"beta": JobPlace("/home/b/jobs/run", "python3", "/home/b/package", "/home/b")},
        secret="hush",
    )


def test_two_hosts() -> None:
    """The master's line has hosts with slots, our agent and the interface; the other waits."""
    master, other = planned(2).hosts
    (mpirun,), (daemon,) = master.processes, other.processes
    assert mpirun.command.argv == (
        "mpirun", "-np", "4", "--host", "10.0.0.1:2,10.0.0.2:2",
        "--map-by", "ppr:2:node", "--bind-to", "none", "--leave-session-attached",
        "--mca", "plm_rsh_agent", "python3 -m paceline.mpi call",
        "--mca", "plm_rsh_no_tree_spawn", "1",
        "--mca", "oob_tcp_if_include", "ens5", "--mca", "btl_tcp_if_include", "ens5",
        "python3", "-m", "paceline.mpi", "rank",
    )  # fmt: skip
    assert mpirun.ranks == (0, 1, 2, 3)
    assert daemon.command.argv == ("python3", "-m", "paceline.mpi", "serve", "20002")
    assert json.loads(str(mpirun.command.env["PACELINE_MPI_PORTS"])) == {"10.0.0.2": 20002}
    for process in (mpirun, daemon):
        env = process.command.env
        assert (env["MASTER_ADDR"], env["MASTER_PORT"]) == ("10.0.0.1", "29999")
        assert env["PACELINE_MPI_SECRET"] == Secret("hush")
        assert json.loads(str(env["PACELINE_MPI_ARGV"])) == ["work"]


def test_the_slots_of_a_hostfile_are_a_limit() -> None:
    """More ranks than a host has slots are refused with its name; as many are not."""
    planned(2, replace(BETA, slots=2))
    with pytest.raises(PlanError, match="beta: it has 1 slot, and 2 ranks"):
        planned(2, replace(BETA, slots=1))
    planned(1, replace(BETA, slots=1))


def test_every_host_has_its_own_places() -> None:
    """Paths that differ between the hosts are those of each host."""
    master, other = planned(2).hosts
    assert master.processes[0].command.env["PACELINE_EVENTS"] == "/jobs/run/events"
    env = other.processes[0].command.env
    assert env["PACELINE_EVENTS"] == "/home/b/jobs/run/events"
    assert env["PYTHONPATH"] == "/home/b/package"
    assert env["PACELINE_MPI_WORKDIR"] == "/home/b"


def test_one_host_needs_no_calls() -> None:
    """Alone, mpirun starts its ranks by itself over the loopback."""
    (master,) = planned(1).hosts
    argv = master.processes[0].command.argv
    assert argv[3:5] == ("--host", "127.0.0.1:2")
    assert "--mca" not in argv
