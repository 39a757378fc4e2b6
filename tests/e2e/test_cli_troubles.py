"""What can go wrong around a run: disks, records, data, other people's terminals."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.test_cli_studies import SPEC, runs_of, write_study
from tests.fakes.terminal import Terminal, wait_until

pytestmark = pytest.mark.e2e


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Return a folder on a disk of 400 KiB."""
    folder = tmp_path / "small disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("a small disk cannot be mounted here (it takes root)")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_looking_while_a_run_starts_does_not_lose_it(terminal: Terminal) -> None:
    """However often somebody lists runs while one is starting, it is never taken for lost."""
    script = (
        "import paceline\nwhile True:\n    print(*(run.state.value for run in paceline.runs()))\n"
    )
    watcher = subprocess.Popen(
        [sys.executable, str(terminal.file("watch.py", script))],
        env={**terminal.env, "PYTHONPATH": str(Path(__file__).parents[2] / "src")},
        cwd=terminal.folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        ids = [
            terminal.paceline("run", "--detach", "--", "sleep", "30").stdout.strip()
            for _ in range(3)
        ]
    finally:
        watcher.kill()
        seen, _ = watcher.communicate()
    assert set(seen.split()) == {"running"}, seen[-500:]
    for run_id in ids:
        assert terminal.paceline("stop", run_id).returncode == 0
    assert terminal.processes() == []


def test_a_refused_study_leaves_the_plan_of_the_other_alone(terminal: Terminal) -> None:
    """A second study with another grid changes nothing of the one that is at work."""
    study = write_study(terminal)
    first = terminal.start("study", "spec.yaml")
    wait_until((study / "runs").is_dir)
    smaller = terminal.paceline("study", "spec.yaml", "-s", "study.grid.procs_per_node=[1]")
    assert smaller.returncode == 7
    first.communicate(timeout=60)
    report = json.loads(terminal.paceline("report", "scaling", "--json").stdout)
    assert len(report["configurations"]) == 2


def test_every_run_keeps_where_it_took_place(terminal: Terminal) -> None:
    """The hardware and the versions are written down with each run."""
    study = write_study(terminal, spec=SPEC.replace("samples: 2", "samples: 1"))
    assert terminal.paceline("study", "spec.yaml").returncode == 0
    for run in json.loads(terminal.paceline("ls", "--all", "--json").stdout)["runs"]:
        (host,) = run["provenance"]["hosts"].values()
        assert host["cores"] == len(os.sched_getaffinity(0))
    assert len(runs_of(study)) == 2


def test_an_edited_command_is_another_study(terminal: Terminal) -> None:
    """The files that a command names are part of what is measured."""
    write_study(terminal)
    spec = SPEC.replace("script: train.py", "command: [python3, train.py]")
    terminal.file("spec.yaml", spec.replace("samples: 2", "samples: 1"))
    terminal.env["PYTHONPATH"] = str(Path(__file__).parents[2] / "src")
    assert terminal.paceline("study", "spec.yaml").returncode == 0
    terminal.file("train.py", "print('another program')\n")
    assert terminal.paceline("study", "spec.yaml").returncode == 7


@pytest.mark.parametrize("damage", ["{}", "{", "\x00\x01", "[]"])
def test_one_damaged_record_does_not_hide_the_others(terminal: Terminal, damage: str) -> None:
    """A list shows a damaged run as such, beside those that can be read."""
    assert terminal.paceline("run", "--name", "good", "--", "true").returncode == 0
    assert terminal.paceline("run", "--name", "bad", "--", "true").returncode == 0
    (bad,) = terminal.folder.glob("paceline-results/bad-*")
    (bad / "run.json").write_text(damage)
    listed = terminal.paceline("ls", "--json")
    assert listed.returncode == 0, listed.stderr
    states = {run["state"] for run in json.loads(listed.stdout)["runs"]}
    assert states == {"succeeded", "unreadable"}
    logs = terminal.paceline("logs", bad.name)
    assert logs.returncode == 9
    assert "damaged" in logs.stderr


def test_results_that_do_not_fit_are_fetched_later(terminal: Terminal, small_disk: Path) -> None:
    """On a full results disk nothing is lost: the message names it, and the next look fetches."""
    results = small_disk / "results"
    script = "head -c 600000 /dev/zero | tr '\\0' 'x'; echo; echo end"
    done = terminal.paceline("run", "--results", str(results), "--", "sh", "-c", script)
    assert done.returncode == 9
    assert "the disk is full" in done.stderr
    assert str(small_disk) in done.stderr
    assert "Traceback" not in done.stderr
    subprocess.run(["mount", "-o", "remount,size=4m", str(small_disk)], check=True)
    assert terminal.paceline("ls", "--json").returncode == 0
    (run,) = json.loads(terminal.paceline("ls", "--json").stdout)["runs"]
    assert run["state"] == "succeeded"
    assert terminal.jobs() == []
    assert terminal.paceline("logs").stdout.endswith("end\n")


def test_a_data_folder_that_is_not_there_is_said_before_the_ranks_start(
    terminal: Terminal,
) -> None:
    """Missing data is one message with a way out, and no run is begun."""
    done = terminal.paceline("train", "-s", "data.dataset=cifar10", "-s", "data.root=nowhere")
    assert done.returncode == 3
    assert "the data set cifar10 cannot be read: there is no cifar10 in" in done.stderr
    assert "paceline data fetch" in done.stderr
    assert terminal.results() == []


def test_a_data_folder_that_may_not_be_read_is_named(terminal: Terminal) -> None:
    """A folder without rights is one message that says what to do, and no run is begun."""
    closed = terminal.folder / "closed"
    closed.mkdir(mode=0)
    words = (sys.executable, "-m", "paceline", "train", "-s", "data.dataset=cifar10")
    powers = "-dac_override,-dac_read_search"  # with these, root may read everything
    plain = ("setpriv", f"--bounding-set={powers}", f"--inh-caps={powers}")
    where = ("-s", f"data.root={json.dumps(str(closed))}")
    done = subprocess.run(
        [*(plain if os.geteuid() == 0 else ()), *words, *where],
        cwd=terminal.folder, env=terminal.env, capture_output=True, text=True, timeout=120,
        check=False,
    )  # fmt: skip
    assert done.returncode == 3, done.stderr
    assert f"{closed} may not be read by this user" in done.stderr
    assert "chmod" in done.stderr
    assert "Traceback" not in done.stderr
    assert terminal.results() == []


def test_the_doctor_reports_what_is_wrong_with_its_own_home(terminal: Terminal) -> None:
    """A state folder that cannot be used is a finding, and the other checks are made."""
    shutil.rmtree(terminal.home)
    terminal.home.write_text("a file where a folder should be")
    done = terminal.paceline("doctor", "--json")
    assert done.returncode == 3
    checks = {check["name"]: check["status"] for check in json.loads(done.stdout)}
    assert checks["state folder"] == "fail"
    assert checks["python"] == "ok"


def test_a_command_is_run_where_it_is_typed(terminal: Terminal) -> None:
    """A spec that only names the machines does not change where a command finds its files."""
    (terminal.folder / "other").mkdir()
    (terminal.folder / "other" / "machines.yaml").write_text("name: machines\n")
    terminal.file("mine.py", "print('found')\n")
    done = terminal.paceline("run", "--spec", "other/machines.yaml", "--", "python3", "mine.py")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "found\n"


def test_data_that_is_not_there_is_not_verified(terminal: Terminal) -> None:
    """`data verify` fails where there is nothing, so that `&&` stops there."""
    done = terminal.paceline("data", "verify", "cifar10", "--root", "nowhere")
    assert done.returncode == 3
    assert "nowhere" in done.stderr
