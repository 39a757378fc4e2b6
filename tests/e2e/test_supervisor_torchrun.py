"""torchrun under the supervisor: its workers' words are shown, and its workers never stay."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from paceline.supervisor.job import JobProcess
from paceline.supervisor.ports import free_ports
from tests.fakes.supervised import SupervisedJob, until

pytestmark = [pytest.mark.e2e, pytest.mark.torch]
pytest.importorskip("torch")

WORKER = """
import os, sys, time
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
{prelude}
print(f"worker {{rank}} is up", flush=True)
dist.barrier()
if rank == 1 and {crash}:
    raise ValueError("rank one has no data")
time.sleep(1000)
"""
DEAF = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)"


def begin(job: SupervisedJob, tmp_path: Path, *, crash: bool, prelude: str = "") -> None:
    """Start two workers under torchrun and wait until both are up."""
    script = tmp_path / "worker.py"
    script.write_text(WORKER.format(crash=crash, prelude=prelude))
    (port,) = free_ports(1)
    argv = (
        *(sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2"),
        *(f"--master-port={port}", str(script)),
    )
    env = {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    job.write_processes(JobProcess("torchrun", argv, env=env, ranks=(0, 1)), grace_s=3.0)
    job.start()
    until(lambda: job.log("torchrun").count("is up") == 2, "two workers")


def test_the_traceback_of_the_worker_is_shown(job: SupervisedJob, tmp_path: Path) -> None:
    """When one worker crashes, the excerpt is that worker's traceback and not torchrun's."""
    begin(job, tmp_path, crash=True)
    state = job.ended()
    assert state.outcome == "failed"
    failure = state.first_failure
    assert failure is not None
    assert failure.process == "torchrun"
    assert failure.excerpt.splitlines()[-1].endswith("ValueError: rank one has no data")
    assert "ChildFailedError" not in failure.excerpt
    assert job.alive() == []


@pytest.mark.parametrize("prelude", ["", DEAF])
def test_workers_end_with_their_supervisor(
    job: SupervisedJob, tmp_path: Path, prelude: str
) -> None:
    """With the supervisor killed, neither torchrun nor a worker stays, however deaf."""
    begin(job, tmp_path, crash=False, prelude=prelude)
    assert len(job.alive()) == 3
    job.kill_supervisor()
    assert job.ended().outcome == "lost"
    assert job.alive() == []


def test_workers_end_with_their_launcher(job: SupervisedJob, tmp_path: Path) -> None:
    """With torchrun itself killed, its orphaned workers fall to the supervisor, and end."""
    begin(job, tmp_path, crash=False, prelude=DEAF)
    os.kill(job.state().processes["torchrun"].pid or 0, signal.SIGKILL)
    state = job.ended()
    assert state.outcome == "failed"
    assert state.processes["torchrun"].exit_code == -signal.SIGKILL
    assert job.alive() == []


def test_a_stop_ends_the_workers(job: SupervisedJob, tmp_path: Path) -> None:
    """A request to stop reaches the workers through torchrun."""
    begin(job, tmp_path, crash=False)
    assert job.stop().outcome == "stopped"
    assert job.alive() == []
