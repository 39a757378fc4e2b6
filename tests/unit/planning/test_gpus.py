"""The example for hosts with GPUs: what NCCL is told, on hosts that nobody here has."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from paceline.model.host import Cluster, Gpu, Host, HostFacts
from paceline.model.plan import Configuration, RunPlan
from paceline.model.spec import load_spec
from paceline.planning.run import plan_run

EXAMPLE = Path(__file__).parents[3] / "examples" / "gpus.yaml"
HOSTS = (Host("a", "203.0.113.10", "172.31.0.4"), Host("b", "203.0.113.11", "172.31.0.5"))
EIGHT = HostFacts("a", cores=96, gpus=(Gpu("NVIDIA A100", 40960),) * 8, interface="ens32")


def planned(facts: HostFacts) -> RunPlan:
    """Return the plan of the example's own job on two hosts of a kind."""
    spec = load_spec(EXAMPLE)
    return plan_run(
        spec,
        Configuration(2, spec.job.procs_per_node, 16),
        Cluster("gpus", "hosts", HOSTS),
        {host.name: replace(facts, hostname=host.name) for host in HOSTS},
        "r1",
        job_folder="/jobs/r1",
        python="python3",
        import_path=None,
        port=29500,
        measured=False,
    )


def test_torchrun_starts_one_process_for_each_gpu() -> None:
    """Eight on each host, numbered by host, meeting at the private address of the first."""
    for rank, host in enumerate(planned(EIGHT).hosts):
        (process,) = host.processes
        line = " ".join(process.command.argv)
        assert f"--nnodes 2 --node-rank {rank} --nproc-per-node 8" in line
        assert "--master-addr 172.31.0.4 --master-port 29500" in line
        assert line.endswith("--cuda --epochs 1 --batch_size 16")


@pytest.mark.parametrize("interface", ["ens5", "ens32"])
def test_nccl_is_told_the_interface_that_was_found(interface: str) -> None:
    """Nobody types `export NCCL_SOCKET_IFNAME`; gloo, which NCCL meets over, has the same."""
    for host in planned(replace(EIGHT, interface=interface)).hosts:
        env = host.processes[0].command.plain_env()
        assert env["NCCL_SOCKET_IFNAME"] == env["GLOO_SOCKET_IFNAME"] == interface
        assert env["OMP_NUM_THREADS"] == "12"


def test_without_gpus_the_lines_are_the_same() -> None:
    """The spec needs no change for hosts without GPUs: the trainer finds out, and says so."""
    lines = [[host.processes[0].command.argv for host in planned(facts).hosts]
             for facts in (EIGHT, replace(EIGHT, gpus=()))]  # fmt: skip
    assert lines[0] == lines[1]
