"""The story of four machines with docker: Paceline's way, and the long way by hand."""

from __future__ import annotations

import json
import shutil
import subprocess
import threading

import pytest

from paceline.rehearsal.engine import Engine
from paceline.rehearsal.hosts import SshHost
from paceline.rehearsal.python_image import PYTHON_IMAGE, load_python_image
from tests.fakes.cifar import write_cifar
from tests.fakes.terminal import Terminal
from tests.fakes.tutorial import ROOT, Tutorial

pytestmark = [pytest.mark.e2e, pytest.mark.torch]
pytest.importorskip("torch")
PAGE = "172.31.71.56"
MACHINES = 2  # stand for the page's four: CI has two cores
IMAGES = 16 * 2 * MACHINES  # one batch for each rank
# A container asks the name servers of its host, and a lab has none that answers.
QUICK = {"RES_OPTIONS": "timeout:1 attempts:1"}


@pytest.fixture
def tutorial(
    docker_lab: tuple[SshHost, ...], engines: tuple[Engine, ...], terminal: Terminal
) -> Tutorial:
    """Return the page, read by somebody with two machines, whose first can build the image."""
    hosts = docker_lab
    load_python_image(engines[0])
    shutil.copy(ROOT / "dist_dcgan.py", terminal.folder)
    write_cifar(terminal.folder / "cifar10", IMAGES)
    words = {
        ",203.0.113.12,203.0.113.13": "",
        "203.0.113.10": hosts[0].address,
        "203.0.113.11": hosts[1].address,
        "--nnodes=4": f"--nnodes={MACHINES}",
    }
    # Names do not resolve in a lab; on EC2 they lead to the private address.
    by_hand = "--env OMP_NUM_THREADS=1 --env GLOO_SOCKET_IFNAME=eth0"
    by_hand += "".join(f" --env '{name}={value}'" for name, value in QUICK.items())
    made = Tutorial(
        "1-docker",
        terminal,
        {
            **words,
            PAGE: hosts[0].address,
            "--env OMP_NUM_THREADS=2": by_hand,
            "sudo docker": "docker",
            # In a lab, who logs in does not start at home.
            "mkdir -p dcgan": "sh -c 'mkdir -p $HOME/dcgan'",
        },
    )
    made.log_in_with(hosts[0].user_key)
    base = {"BASE": PYTHON_IMAGE, "TORCH": ""}
    made.example(
        "four-docker.yaml",
        {
            ", 203.0.113.12, 203.0.113.13": "",
            "../Dockerfile": str(ROOT / "Dockerfile"),
            "image: dist_dcgan": "image: dist_dcgan\n  build_on: host\n"
            f"  build_args: {json.dumps(base)}\n"
            f"  build_options: [--network=host]\n  env: {json.dumps(QUICK)}",
            "download: true ": f"root: {terminal.folder / 'cifar10'} ",
            "threads: 2": "threads: 1",
        },
    )
    return made


def test_four_machines_with_docker(
    tutorial: Tutorial,
    docker_lab: tuple[SshHost, ...],
    engines: tuple[Engine, ...],
) -> None:
    """All ranks train in containers and their pictures come home; the long way works as well."""
    hosts = docker_lab
    assert f"pairs: {MACHINES} hosts reach each other" in tutorial.see("paceline doctor")
    said = tutorial.see("paceline train", timeout_s=500)
    assert sum("Epoch 0 took" in line for line in said.splitlines()) == 2 * MACHINES
    assert (
        f"fake_samples_rank_{2 * MACHINES - 1}_epoch_0_iter_0.png"
        in tutorial.see("ls paceline-results").split()
    )
    assert [made.containers() for made in engines] == [[]] * MACHINES
    tutorial.skip("paceline data fetch", because="the set is made for the test")
    tutorial.see("paceline exec")
    tutorial.see("paceline cp")
    tutorial.see("paceline cp")
    lines = [tutorial.next_line("sudo docker run") for _ in hosts]
    tutorial.skip("sudo docker run", because="there are only two machines")
    tutorial.skip("sudo docker run", because="there are only two machines")
    took = in_terminals(hosts, lines)
    assert sum("Epoch 0 took" in line for line in took.splitlines()) == 2 * MACHINES, took
    for rank, host in enumerate(hosts):
        assert list((host.home / "dcgan").glob(f"fake_samples_rank_{2 * rank}_*.png"))
    tutorial.see("paceline ls")
    tutorial.expect_end()
    assert [made.containers() for made in engines] == [[]] * MACHINES


def in_terminals(hosts: tuple[SshHost, ...], lines: list[str]) -> str:
    """Type each line into a terminal on its host, all at once; return what they print."""
    said: list[str] = []

    def type_it(host: SshHost, line: str) -> None:
        options = ("StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "LogLevel=ERROR")
        words = [word for option in options for word in ("-o", option)]
        done = subprocess.run(
            ["ssh", "-F", "none", "-i", str(host.user_key), *words, f"root@{host.address}",
             f'cd "$HOME/dcgan" && {line}'],
            capture_output=True, text=True, timeout=400, check=False,
        )  # fmt: skip
        said.append(done.stdout if done.returncode == 0 else done.stderr)

    pairs = zip(hosts, lines, strict=True)
    threads = [threading.Thread(target=type_it, args=pair) for pair in pairs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return "\n".join(said)
