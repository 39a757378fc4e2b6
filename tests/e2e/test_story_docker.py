"""The story of four machines with docker, on machines of one's own.

The four lines of its long way are typed on rented machines (`test_story_docker_rented.py`): those
have the page's user, sudo, names and number.
"""

from __future__ import annotations

import json
import shutil

import pytest

from paceline.rehearsal.engine import Engine
from paceline.rehearsal.hosts import SshHost
from paceline.rehearsal.python_image import PYTHON_IMAGE, load_python_image
from tests.fakes.cifar import write_cifar
from tests.fakes.terminal import Terminal
from tests.fakes.tutorial import ROOT, Tutorial

pytestmark = [pytest.mark.e2e, pytest.mark.torch]
pytest.importorskip("torch")
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
        # In a lab, who logs in does not start at home.
        "mkdir -p dcgan": "sh -c 'mkdir -p $HOME/dcgan'",
        ",203.0.113.12,203.0.113.13": "",
        "203.0.113.10": hosts[0].address,
        "203.0.113.11": hosts[1].address,
    }
    made = Tutorial("1-docker", terminal, words)
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
    """All ranks train in containers and their pictures come home; the long way is prepared."""
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
    for host in hosts:
        found = {path.name for path in (host.home / "dcgan").iterdir()}
        assert found == {"dist_dcgan.py", "cifar10"}
    for _ in range(4):
        tutorial.skip("sudo docker run", because="they are typed on four rented machines")
    tutorial.see("paceline ls")
    tutorial.expect_end()
    assert [made.containers() for made in engines] == [[]] * MACHINES
