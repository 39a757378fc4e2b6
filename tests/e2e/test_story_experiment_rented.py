"""The story of the experiment script, its chapter on rented machines: all of it, no bill."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from tests import lab
from tests.fakes.cifar import write_cifar
from tests.fakes.terminal import Terminal
from tests.fakes.tutorial import REHEARSED, Tutorial
from tests.rehearsing import until

pytestmark = [pytest.mark.e2e, pytest.mark.torch]
pytest.importorskip("torch")
IMAGES = 128  # one batch of 16 for each of eight ranks
CONFIGURATIONS = ((1, 1), (2, 1), (2, 2), (2, 4))
# Where Debian's package puts it: apt-get there installs what is here.
FABRIC = Path("/usr/lib/python3/dist-packages/fabric")
TAKEN = ("1x1", "2x4")  # two of the four: the study has taken all of them
STUDY = "experiment-rented"
SCRIPT = "python3 experiment.py --hosts 172.31.0.4,172.31.0.5"


@pytest.fixture
def tutorial(rehearsed: Terminal) -> Tutorial:
    """Return the page, read by somebody in a clone of the project, with a small data set."""
    lab.skip_without_dockerd()
    if not FABRIC.is_dir():
        pytest.skip("not installed: python3-fabric")
    # It lies where `download: true` looks before it downloads.
    write_cifar(rehearsed.folder / "cifar10", IMAGES)
    # These hosts share the cores of one machine.
    fewer = f"{SCRIPT} --env OMP_NUM_THREADS=1 --take {' '.join(TAKEN)}"
    instead = {**REHEARSED, SCRIPT: fewer}
    made = Tutorial("2-experiment", rehearsed, instead, rented=True)
    made.example(
        "experiment-rented.yaml",
        {"launcher: torchrun": "launcher: torchrun\n  threads: 1", "samples: 3": "samples: 1"},
    )
    made.clone("Dockerfile", ".dockerignore", "dist_dcgan.py", "src/paceline", "examples/fabric")
    return made


def test_the_experiment_on_rented_machines(tutorial: Tutorial, rehearsed: Terminal) -> None:
    """Baked, rented, measured by a study and by a script typed there; nothing is left."""
    planned = tutorial.see("paceline plan")
    assert "2 x m5.large" in planned
    assert "4 configurations" in planned
    tutorial.see("paceline bake", timeout_s=600)
    tutorial.see("paceline up")
    take_the_study(tutorial, rehearsed)
    type_the_script_there(tutorial, rehearsed)
    assert "is gone" in tutorial.see("paceline down")
    assert "removed image" in tutorial.see("paceline bake rm")
    tutorial.expect_an_empty_account()


def take_the_study(tutorial: Tutorial, rehearsed: Terminal) -> None:
    """Type the line with `nohup`, hang up, watch, and look at what was left."""
    folder = rehearsed.folder / "paceline-results" / STUDY
    tutorial.hang_up(tutorial.begin("nohup paceline study"))
    assert "[4/4]" in tutorial.see("paceline watch", timeout_s=600)
    report = tutorial.see("paceline report")
    assert [line[:5] for line in report.splitlines() if line[1:4] == " x "] == [
        f"{nodes} x {procs}" for nodes, procs in CONFIGURATIONS
    ]
    assert tutorial.see("cat paceline-results").startswith("total,t0,t1,t2,t3,t4,t5,t6,t7\n")
    took = sorted(line.partition(" took:")[0] for line in tutorial.see("grep -h").splitlines())
    assert took == [f"[rank: {rank}] Epoch 0" for rank in range(8)]
    for nodes, procs in CONFIGURATIONS:
        name = f"nnode-{nodes}_nproc-{procs}_batch_size-16.csv"
        expect_the_old_form((folder / name).read_text(), nodes * procs)


def type_the_script_there(tutorial: Tutorial, rehearsed: Terminal) -> None:
    """Bring the script, open the hosts to each other, start it in a shell, and leave it alone."""
    tutorial.see("paceline cp examples/fabric")
    tutorial.see("paceline exec --on 0 -- ssh-keygen")
    tutorial.see("paceline cp 0:")
    tutorial.see("paceline cp first.pub")
    tutorial.see("paceline exec")
    addresses = [line.split()[5] for line in tutorial.see("paceline status").splitlines()
                 if line.startswith("node")]  # fmt: skip
    assert SCRIPT.endswith(",".join(addresses)), "the page has other addresses"
    door = tutorial.next_line("paceline ssh 0")
    typed = [tutorial.next_line(word) for word in ("cd fabric", "nohup python3", "exit")]
    done = tutorial.run(door, typed="".join(f"{line}\n" for line in typed))
    assert done.returncode == 0, done.stderr
    last = "nnode-2_nproc-4_batch_size-16.csv: total"
    tail = tutorial.next_line("paceline exec --on 0 -- tail")
    until(lambda: last in tutorial.run(tail).stdout, within_s=600)
    tutorial.see("paceline cp 0:")
    expect_the_old_form((rehearsed.folder / last.partition(":")[0]).read_text(), ranks=8)
    look = ("sh", "-c", "ls fabric; docker ps --all --quiet")
    there = rehearsed.paceline("--rehearse", "exec", "--on", "0", "--json", "--", *look)
    left = json.loads(there.stdout)[0]["stdout"].split()
    assert [name for name in left if name.startswith("nnode")] == [
        f"nnode-{word.replace('x', '_nproc-')}_batch_size-16.csv" for word in TAKEN
    ]
    assert left[-1] == "run.sh", "a container is left"


def expect_the_old_form(text: str, ranks: int) -> None:
    """Check a configuration's file: its header, and a line of seconds."""
    header, *rows = csv.reader(text.splitlines())
    assert header == ["total", *(f"t{rank}" for rank in range(ranks))]
    assert rows
    for row in rows:
        total, *times = map(float, row)
        assert all(0 < time < total for time in times)
