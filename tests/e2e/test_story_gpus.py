"""The story of two hosts with GPUs, where there is none: the same spec, over gloo, which is said.

What NCCL would be told is held by tests/unit/planning/test_gpus.py.
"""

from __future__ import annotations

import sys

import pytest

from paceline.rehearsal.hosts import SshHost
from tests.fakes.cifar import write_cifar
from tests.fakes.terminal import Terminal
from tests.fakes.tutorial import Tutorial

pytestmark = [pytest.mark.e2e, pytest.mark.torch]
pytest.importorskip("torch")


@pytest.fixture
def tutorial(lab: tuple[SshHost, ...], terminal: Terminal) -> Tutorial:
    """Return the page, read by somebody whose two hosts have no GPU."""
    data = terminal.folder / "cifar10"
    write_cifar(data, 64)
    hosts = {"203.0.113.10": lab[0].address, "203.0.113.11": lab[1].address}
    made = Tutorial("4-gpus", terminal, hosts)
    made.log_in_with(lab[0].user_key)
    made.example(
        "gpus.yaml",
        {
            "python: python3}": f"python: {sys.executable}}}",
            "download: true": f"root: {data}",
            "procs_per_node: 8  ": "procs_per_node: 2\n  threads: 1  ",
        },
    )
    return made


def test_the_spec_for_gpus_runs_without_them(tutorial: Tutorial) -> None:
    """The doctor and the ranks say that there is no GPU, and the ranks train over gloo."""
    assert tutorial.see("paceline doctor").count("gpus: none") == 2
    planned = tutorial.see("paceline plan")
    assert planned.count("NCCL_SOCKET_IFNAME=eth0") >= 2
    done = tutorial.type("paceline train")
    assert done.returncode == 0, done.stderr
    said = done.stdout + done.stderr
    assert "training on the CPU" in said
    assert sum("Epoch 0 took" in line for line in said.splitlines()) == 4
    tutorial.see("paceline ls")
    tutorial.expect_end()
