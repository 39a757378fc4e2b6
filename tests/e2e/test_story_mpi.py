"""The story of mpirun: a hostfile with four slots each, and an epoch that is divided."""

from __future__ import annotations

import csv
import shutil
import sys
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from paceline.rehearsal.hosts import SshHost
from tests.fakes.cifar import write_cifar
from tests.fakes.terminal import Terminal
from tests.fakes.tutorial import REHEARSED, STORIES, Tutorial
from tests.rehearsing import placement_groups, rehearsal_of, until

pytestmark = [pytest.mark.e2e, pytest.mark.torch]
pytest.importorskip("torch")
RANKS = 8
INSIDE = ("172.31.26.253", "172.31.26.254")  # of the page's two machines
BATCHES = 8  # of 16 images: one for each rank


def skip_without_mpirun() -> None:
    """Skip where there is no Open MPI."""
    if shutil.which("mpirun") is None:
        pytest.skip("Open MPI is not installed")


@pytest.fixture
def tutorial(lab: tuple[SshHost, ...], terminal: Terminal) -> Tutorial:
    """Return the page, read by somebody with a hostfile of two machines."""
    skip_without_mpirun()
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
    expect_a_divided_epoch(terminal.folder / "paceline-results/mpi/samples.csv")
    alone = f"iteration: 0/{BATCHES}][rank: 0]"
    shared = [f"iteration: 0/{BATCHES // RANKS}][rank: {rank}]" for rank in range(RANKS)]
    assert sorted(tutorial.see("grep -ho").splitlines()) == sorted([alone, *shared])
    tutorial.see("paceline ls")
    tutorial.expect_end()


def test_mpirun_on_rented_machines(rehearsed: Terminal) -> None:
    """Baked on a large machine, rented close together, measured, given back; nothing is left."""
    skip_without_mpirun()
    # It lies where `download: true` looks before it downloads.
    write_cifar(rehearsed.folder / "cifar10", 16 * BATCHES)
    tutorial = Tutorial("3-mpi", rehearsed, REHEARSED, rented=True)
    tutorial.example("mpi-rented.yaml", {"samples: 3": "samples: 1"})
    tutorial.clone("dist_dcgan.py", "src/paceline")
    planned = tutorial.see("paceline plan")
    assert "2 x c5.xlarge" in planned
    assert "RunInstances" in planned
    baked = tutorial.type("paceline bake", timeout_s=400)
    assert baked.returncode == 0, baked.stderr
    assert "launching 1 x t2.2xlarge" in baked.stderr
    card = rehearsal_of(rehearsed.home)
    with ThreadPoolExecutor(1) as pool:
        study = pool.submit(tutorial.type, "paceline study", 600)
        close = ("cluster", ["c5.xlarge"] * 2)
        until(lambda: study.done() or close in placement_groups(card).values())
        done = study.result()
    assert done.returncode == 0, done.stderr
    assert "8 processes on 2 nodes" in done.stdout
    # What was baked is not made again.
    assert "making the environment" not in done.stderr
    results = rehearsed.folder / "paceline-results/mpi-rented"
    expect_a_divided_epoch(results / "samples.csv")
    assert placement_groups(card) == {}
    type_the_known_line(tutorial)
    tutorial.see("paceline down --all")
    assert "removed image" in tutorial.see("paceline bake rm")
    tutorial.expect_an_empty_account()


def type_the_known_line(tutorial: Tutorial) -> None:
    """Give the machines a key of the first, and type `mpirun` there; only addresses differ."""
    tutorial.see("paceline up")
    for beginning in ("exec --on 0", "cp 0:", "cp master.pub", "exec -- sh", "exec -- cp"):
        tutorial.see(f"paceline {beginning}")
    for name in ("dist_dcgan.py", "src"):
        tutorial.see(f"paceline cp {name}")
    hosts = [line.split() for line in tutorial.see("paceline status").splitlines()]
    addresses = [words[5] for words in hosts if words[:1] in (["node0"], ["node1"])]
    assert len(addresses) == len(INSIDE)
    typed = text_after(STORIES / "3-mpi.md", "paceline ssh 0")
    for old, new in zip(INSIDE, addresses, strict=True):
        assert old in typed
        typed = typed.replace(old, new)
    done = tutorial.run(tutorial.next_line("paceline ssh 0"), typed=typed)
    assert done.returncode == 0, done.stderr
    took = sorted(
        line.partition(" took")[0] for line in done.stdout.splitlines() if " took: " in line
    )
    assert took == [f"[rank: {rank}] Epoch 0" for rank in range(RANKS)], done.stderr


def text_after(page: Path, command: str) -> str:
    """Return the text block that follows a command of a page."""
    rest = page.read_text().partition(f"$ {command}\n")[2]
    return rest.partition("```text\n")[2].partition("```")[0]


def expect_a_divided_epoch(table: Path) -> None:
    """Check that each rank of N did one N-th of the iterations that one process does alone."""
    assert iterations(table) == {1: [BATCHES], RANKS: [BATCHES // RANKS] * RANKS}


def iterations(table: Path) -> dict[int, list[int]]:
    """Return by the number of ranks how many iterations each rank did, warm-up included."""
    found = defaultdict(list)
    with table.open(newline="") as file:
        for row in csv.DictReader(file):
            done = int(row["rank_iterations"]) + int(row["rank_warmup_iterations"])
            found[int(row["world_size"])].append(done)
    return dict(found)
