"""The stories' chapters on rented machines, typed with `--rehearse`: the same specs, no bill."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from tests.fakes.terminal import Terminal
from tests.fakes.tutorial import ROOT, Tutorial
from tests.rehearsing import skip_unless_possible

pytestmark = [pytest.mark.e2e, pytest.mark.torch]
pytest.importorskip("torch")
REHEARSED = {"paceline ": "paceline --rehearse "}


@pytest.fixture
def rehearsed(terminal: Terminal) -> Iterator[Terminal]:
    """Return a terminal whose EC2 is on this machine."""
    skip_unless_possible()
    begun = terminal.paceline("rehearsal", "start")
    assert begun.returncode == 0, begun.stderr
    yield terminal
    ended = terminal.paceline("rehearsal", "stop")
    assert ended.returncode == 0, ended.stdout + ended.stderr


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
    expect_an_empty_account(tutorial, rehearsed)


@pytest.mark.parametrize(
    ("page", "example"), [("1-docker", "four-rented.yaml"), ("3-mpi", "mpi-rented.yaml")]
)
def test_a_plan_for_rented_machines(rehearsed: Terminal, page: str, example: str) -> None:
    """The spec is one that EC2 would carry out; baking and containers have tests of their own."""
    shutil.copy(ROOT / "Dockerfile", rehearsed.folder)
    tutorial = Tutorial(page, rehearsed, REHEARSED, rented=True)
    tutorial.example(example, {})
    planned = tutorial.see("paceline plan")
    assert "strategy cluster" in planned
    assert "RunInstances" in planned


def expect_an_empty_account(tutorial: Tutorial, rehearsed: Terminal) -> None:
    """Check that nothing is left over, by our own search and by the account's list."""
    assert "nothing of yours is left over" in tutorial.type("paceline reap").stderr
    tutorial.expect_end()
    assert "the account holds: nothing" in rehearsed.paceline("rehearsal", "status").stdout
