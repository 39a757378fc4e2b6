"""The project's Dockerfile, the lines that people type with it, and the way with Fabric."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from paceline.rehearsal.engine import Engine
from paceline.rehearsal.hosts import SshHost
from paceline.rehearsal.python_image import PYTHON_IMAGE, load_python_image
from tests.fakes.terminal import Terminal
from tests.lab import cluster_text

pytestmark = [pytest.mark.e2e, pytest.mark.torch]
ROOT = Path(__file__).resolve().parents[2]
TRAINING = "--dataset fake --count 32 --num_epochs 1 --max_workers 2 --pictures_every 0"
# A container asks the name servers of its host, and a lab has none that answers.
QUICK = "RES_OPTIONS=timeout:1 attempts:1"


@pytest.fixture
def prepared(
    docker_lab: tuple[SshHost, ...], engines: tuple[Engine, ...], terminal: Terminal
) -> tuple[SshHost, ...]:
    """Return hosts on which a run has left the image of this project's Dockerfile."""
    load_python_image(engines[0])
    runtime = {
        "kind": "docker",
        "dockerfile": str(ROOT / "Dockerfile"),
        "image": "dist_dcgan",
        "build_args": {"BASE": PYTHON_IMAGE, "TORCH": ""},
        "build_on": "host",
        "build_options": ["--network=host"],
        "env": dict([QUICK.split("=", 1)]),
    }
    terminal.file("spec.yaml", f"{cluster_text(docker_lab)}runtime: {json.dumps(runtime)}\n")
    words = ("train", "spec.yaml", "--program", "mlp", "-s", "job.args.iterations=2")
    done = terminal.paceline(*words, timeout_s=400)
    assert done.returncode == 0, done.stderr
    assert f"building dist_dcgan:latest on {docker_lab[0].address}" in done.stderr
    assert "bringing dist_dcgan:paceline-" in done.stderr
    again = terminal.paceline(*words, timeout_s=400)
    assert again.returncode == 0, again.stderr
    assert "bringing" not in again.stderr
    return docker_lab


def test_the_image_and_the_ways_that_people_use_it(
    prepared: tuple[SshHost, ...], engines: tuple[Engine, ...], tmp_path: Path
) -> None:
    """Built on one host, found on the other; `docker run` by hand, then a Fabric experiment."""
    checkout = tmp_path / "checkout"
    (checkout / "src").mkdir(parents=True)
    shutil.copy(ROOT / "dist_dcgan.py", checkout)
    said = engines[1].docker(
        "run", "--env", "OMP_NUM_THREADS=1", "--env", QUICK, "--rm", "--network=host",
        "-p", "1234:1234", f"-v={checkout}:/root", "dist_dcgan:latest",
        "python", "-m", "torch.distributed.launch", "--nproc_per_node=1", "--nnodes=1",
        "--node_rank=0", "--master_addr=127.0.0.1", "--master_port=1234",
        "dist_dcgan.py", *TRAINING.split(), "--batch_size", "16",
    )  # fmt: skip
    assert "[rank: 0] Epoch 0 took: " in said
    _with_fabric(prepared, checkout, tmp_path)
    assert [made.containers() for made in engines] == [[], []]


def _with_fabric(hosts: tuple[SshHost, ...], checkout: Path, folder: Path) -> None:
    """Run the example as it stands, on two hosts with two processes each."""
    for host in hosts:
        shutil.copytree(checkout, host.home / "fabric")
        shutil.copy(ROOT / "examples" / "fabric" / "run.sh", host.home / "fabric")
    done = subprocess.run(
        (
            sys.executable, str(ROOT / "examples" / "fabric" / "experiment.py"),
            "--hosts", ",".join(f"root@{host.address}" for host in hosts),
            "--key", str(hosts[0].user_key), "--take", "2x2", "--env", QUICK,
            "--env", "OMP_NUM_THREADS=1", "--env", "GLOO_SOCKET_IFNAME=eth0",
            "--arguments", TRAINING,
        ),
        cwd=folder, capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    header, sample = (folder / "nnode-2_nproc-2_batch_size-16.csv").read_text().splitlines()
    assert header == "total,t0,t1,t2,t3"
    assert all(float(cell) > 0 for cell in sample.split(","))
    ranks = [(host.home / "fabric" / ".env").read_text().splitlines()[0] for host in hosts]
    assert ranks == ["NODE_RANK=0", "NODE_RANK=1"]
