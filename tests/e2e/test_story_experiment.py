"""The story of the experiment script: two hosts by address, from the page's own commands."""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import pytest

from paceline.rehearsal.hosts import SshHost
from tests.fakes.cifar import write_cifar
from tests.fakes.terminal import Terminal
from tests.fakes.tutorial import Tutorial

pytestmark = [pytest.mark.e2e, pytest.mark.torch]
pytest.importorskip("torch")
IMAGES = 128  # one batch of 16 for each of eight ranks
CONFIGURATIONS = ((1, 1), (2, 1), (2, 2), (2, 4))


@pytest.fixture
def tutorial(lab: tuple[SshHost, ...], terminal: Terminal) -> Tutorial:
    """Return the page, read by somebody whose two hosts answer to a key of their ssh config."""
    data = terminal.folder / "cifar10"
    write_cifar(data, IMAGES)
    hosts = {"203.0.113.10": lab[0].address, "203.0.113.11": lab[1].address}
    made = Tutorial("2-experiment", terminal, hosts)
    made.log_in_with(lab[0].user_key)
    made.example(
        "experiment.yaml",
        {
            "python: python3}": f"python: {sys.executable}}}",
            "download: true": f"root: {data}",
            # These hosts share the cores of one machine.
            "launcher: torchrun": "launcher: torchrun\n  threads: 1",
            "samples: 3": "samples: 1",
        },
    )
    return made


def test_the_experiment_script(tutorial: Tutorial, terminal: Terminal) -> None:
    """The study outlives its terminal and leaves the CSV files that `experiment.py` left."""
    assert "pairs: 2 hosts reach each other" in tutorial.see("paceline doctor")
    planned = tutorial.see("paceline plan")
    assert "4 configurations" in planned
    assert "--node-rank 1 --nproc-per-node 4" in planned
    tutorial.hang_up(tutorial.begin("nohup paceline study"))
    assert "[4/4]" in tutorial.see("paceline watch")
    report = tutorial.see("paceline report")
    assert [line[:5] for line in report.splitlines() if line[1:4] == " x "] == [
        f"{nodes} x {procs}" for nodes, procs in CONFIGURATIONS
    ]
    header, *samples = tutorial.see("cat paceline-results").splitlines()
    assert header == "total,t0,t1,t2,t3,t4,t5,t6,t7"
    assert len(samples) == 1
    said = tutorial.see("grep -h")
    assert sorted(line.partition(" took:")[0] for line in said.splitlines()) == [
        f"[rank: {rank}] Epoch 0" for rank in range(8)
    ]
    assert "cluster" not in tutorial.see("paceline ls")
    tutorial.expect_end()
    for nodes, procs in CONFIGURATIONS:
        expect_the_old_form(terminal.folder / "paceline-results/experiment", nodes, procs)


def expect_the_old_form(folder: Path, nodes: int, procs: int) -> None:
    """Check a configuration's file: its name, its header, and a line of seconds."""
    name = f"nnode-{nodes}_nproc-{procs}_batch_size-16.csv"
    with (folder / name).open(newline="") as file:
        header, *rows = csv.reader(file)
    assert header == ["total", *(f"t{rank}" for rank in range(nodes * procs))]
    for row in rows:
        total, *times = map(float, row)
        assert all(0 < time < total for time in times)
