"""The story of hosts with GPUs, its chapter on rented machines: the same spec, no bill."""

from __future__ import annotations

import pytest

from tests.fakes.terminal import Terminal
from tests.fakes.tutorial import REHEARSED, Tutorial

pytestmark = [pytest.mark.e2e, pytest.mark.torch]
pytest.importorskip("torch")


def test_two_hosts_with_gpus_are_rented_and_given_back(rehearsed: Terminal) -> None:
    """One command rents, trains over gloo and says so, and gives back; the account is empty."""
    tutorial = Tutorial("4-gpus", rehearsed, REHEARSED, rented=True)
    tutorial.example(
        "gpus-rented.yaml",
        {
            "dataset: cifar10\n  download: true": "dataset: fake",
            "procs_per_node: 8 ": "procs_per_node: 2\n  threads: 1 ",
            "batch_size: 16}": "batch_size: 16, iterations: 2}",
        },
    )
    planned = tutorial.see("paceline plan")
    assert "strategy cluster" in planned
    assert "2 x g4dn.metal" in planned
    done = tutorial.type("paceline train", timeout_s=400)
    assert done.returncode == 0, done.stderr
    said = done.stdout + done.stderr
    assert "training on the CPU" in said
    assert said.count("World Size: 4") == 4
    assert "no cluster is up" in tutorial.type("paceline down --all").stderr
    tutorial.expect_an_empty_account()
