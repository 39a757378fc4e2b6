"""The story of mpirun: a hostfile with four slots each, and an epoch that is divided."""

from __future__ import annotations

import csv
import shutil
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from paceline.rehearsal.hosts import SshHost
from tests.fakes.cifar import write_cifar
from tests.fakes.terminal import Terminal
from tests.fakes.tutorial import Tutorial

pytestmark = [pytest.mark.e2e, pytest.mark.torch]
pytest.importorskip("torch")
RANKS = 8
BATCHES = 8  # of 16 images: one for each rank


@pytest.fixture
def tutorial(lab: tuple[SshHost, ...], terminal: Terminal) -> Tutorial:
    """Return the page, read by somebody with a hostfile of two machines."""
    if shutil.which("mpirun") is None:
        pytest.skip("Open MPI is not installed")
    data = terminal.folder / "cifar10"
    write_cifar(data, 16 * BATCHES)
    made = Tutorial("3-mpi", terminal, {})
    made.log_in_with(lab[0].user_key)
    made.example("hostfile", {"203.0.113.10": lab[0].address, "203.0.113.11": lab[1].address})
    small = {"download: true": f"root: {data}", "samples: 3": "samples: 1"}
    made.example("mpi.yaml", {"python: python3}": f"python: {sys.executable}}}", **small})
    return made


def test_mpirun_over_a_hostfile(tutorial: Tutorial, terminal: Terminal) -> None:
    """Each rank of N does one N-th of the iterations that one process does alone."""
    assert "slots=4" in tutorial.see("cat examples/hostfile")
    tutorial.see("paceline doctor")
    assert ":4 --map-by ppr:4:node" in tutorial.see("paceline plan")
    found = tutorial.see("paceline study")
    assert "8 processes on 2 nodes" in found
    steps = iterations(terminal.folder / "paceline-results/mpi/samples.csv")
    assert steps == {1: [BATCHES], RANKS: [BATCHES // RANKS] * RANKS}
    alone = f"iteration: 0/{BATCHES}][rank: 0]"
    shared = [f"iteration: 0/{BATCHES // RANKS}][rank: {rank}]" for rank in range(RANKS)]
    assert sorted(tutorial.see("grep -ho").splitlines()) == sorted([alone, *shared])
    tutorial.see("paceline ls")
    tutorial.expect_end()


def iterations(table: Path) -> dict[int, list[int]]:
    """Return by the number of ranks how many iterations each rank did, warm-up included."""
    found = defaultdict(list)
    with table.open(newline="") as file:
        for row in csv.DictReader(file):
            done = int(row["rank_iterations"]) + int(row["rank_warmup_iterations"])
            found[int(row["world_size"])].append(done)
    return dict(found)
