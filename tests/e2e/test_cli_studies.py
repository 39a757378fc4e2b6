"""Studies from the command line: interrupted, killed, failing, resumed, reported."""

from __future__ import annotations

import csv
import json
import os
import signal
from collections import Counter
from pathlib import Path

import pytest

from tests.fakes.terminal import Terminal, wait_until

pytestmark = pytest.mark.e2e

REPORTING = """\
import time
from paceline.events import Reporter

with Reporter() as progress:
    for index in range(6):
        time.sleep(0.05)
        progress.iteration(0, index, of=6, items=4)
    progress.epoch(0)
"""
SPEC = """\
name: scaling
job: {script: train.py, oversubscribe: true, unit: item}
study: {grid: {procs_per_node: [1, 2]}, samples: 2, warmup: 1, measure: epoch}
limits: {retries: 0}
"""


def write_study(terminal: Terminal, script: str = REPORTING, spec: str = SPEC) -> Path:
    """Write a spec of four short samples and its script; return the study's folder."""
    terminal.file("train.py", script)
    terminal.file("spec.yaml", spec)
    return terminal.folder / "paceline-results" / "scaling"


def runs_of(study: Path) -> list[dict[str, str]]:
    """Return the records of a study's runs."""
    return [json.loads(path.read_text()) for path in sorted(study.glob("runs/*/run.json"))]


def test_a_study_leaves_all_its_files(terminal: Terminal) -> None:
    """A study writes report, document, tidy table and the files of old habit."""
    study = write_study(terminal)
    done = terminal.paceline("study", "spec.yaml")
    assert done.returncode == 0, done.stderr
    assert "speedup" in done.stdout
    assert str(study / "report.html") in done.stdout
    assert "[4/4]" in done.stderr
    with (study / "nnode-1_nproc-2.csv").open() as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["total", "t0", "t1"]
    assert len(rows) == 3
    # An epoch of six steps of 50 ms, and a total that includes Python's own start.
    assert all(0.3 <= float(row[1]) < float(row[0]) for row in rows[1:])
    tidy = list(csv.DictReader((study / "samples.csv").read_text().splitlines()))
    assert Counter(row["world_size"] for row in tidy) == {"1": 2, "2": 4}
    document = json.loads((study / "study.json").read_text())
    assert document["provenance"]["hosts"]
    assert (study / "report.html").read_text().startswith("<!doctype html>")


def test_a_second_study_of_the_same_spec_measures_nothing_again(terminal: Terminal) -> None:
    """What is done is never done twice, and more samples add only themselves."""
    study = write_study(terminal)
    terminal.paceline("study", "spec.yaml")
    before = {run["run_id"] for run in runs_of(study)}
    again = terminal.paceline("study", "spec.yaml")
    assert again.returncode == 0, again.stderr
    assert {run["run_id"] for run in runs_of(study)} == before
    assert terminal.paceline("study", "spec.yaml", "--samples", "3").returncode == 0
    assert len(runs_of(study)) == 6
    assert before < {run["run_id"] for run in runs_of(study)}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_study_resumes(terminal: Terminal, number: signal.Signals) -> None:
    """After Ctrl-C, and after a kill, the same command takes only what is missing."""
    study = write_study(terminal)
    first = terminal.start("study", "spec.yaml")
    wait_until(lambda: sum(run["state"] == "succeeded" for run in runs_of(study)) >= 1)
    wait_until(lambda: any(run["state"] == "running" for run in runs_of(study)))
    first.send_signal(number)
    first.communicate(timeout=60)
    kept = {run["run_id"] for run in runs_of(study) if run["state"] == "succeeded"}
    if number == signal.SIGINT:
        assert first.returncode == 130
        assert terminal.processes() == []
        assert (study / "report.html").exists()
    second = terminal.paceline("study", "spec.yaml")
    assert second.returncode == 0, second.stderr
    good = Counter(run["sample_id"] for run in runs_of(study) if run["state"] == "succeeded")
    assert kept <= {run["run_id"] for run in runs_of(study)}
    assert len(good) == 4
    assert set(good.values()) == {1}
    assert terminal.jobs() == []


def test_two_at_once_on_one_study_do_not_mix(terminal: Terminal) -> None:
    """A second process on the same study is told who is at work on it."""
    write_study(terminal)
    first = terminal.start("study", "spec.yaml")
    wait_until(lambda: "scaling" in terminal.results())
    wait_until((terminal.folder / "paceline-results/scaling/runs").is_dir)
    second = terminal.paceline("study", "spec.yaml")
    assert second.returncode == 7
    assert "being worked on by process" in second.stderr
    first.communicate(timeout=60)
    assert first.returncode == 0


def test_a_failing_sample_is_a_record_and_not_a_gap(terminal: Terminal) -> None:
    """A configuration that fails is reported with its reason beside those that work."""
    script = REPORTING.replace(
        "import time\n", "import os, time\nassert os.environ['WORLD_SIZE'] == '1', 'only one'\n"
    )
    study = write_study(terminal, script)
    done = terminal.paceline("study", "spec.yaml")
    assert done.returncode == 5
    assert "the study is incomplete" in done.stderr
    assert "failed" in done.stdout
    failed = [run for run in runs_of(study) if run["state"] == "failed"]
    assert len(failed) == 2
    tidy = list(csv.DictReader((study / "samples.csv").read_text().splitlines()))
    assert sum(bool(row["failed"]) for row in tidy) >= 2
    mended = terminal.paceline("study", "spec.yaml", "-s", "study.samples=2")
    assert mended.returncode == 5


def test_a_job_that_never_works_stops_the_study_at_once(terminal: Terminal) -> None:
    """When the first sample fails, the study ends with the rank's own words."""
    study = write_study(terminal, "raise RuntimeError('no data here')\n")
    done = terminal.paceline("study", "spec.yaml")
    assert done.returncode == 5
    assert "RuntimeError: no data here" in done.stderr
    assert len(runs_of(study)) == 1


def test_another_script_under_the_same_name_is_a_conflict(terminal: Terminal) -> None:
    """Samples of an edited script are not mixed with those of the old one."""
    write_study(terminal)
    assert terminal.paceline("study", "spec.yaml").returncode == 0
    terminal.file("train.py", REPORTING.replace("range(6)", "range(7)"))
    done = terminal.paceline("study", "spec.yaml")
    assert done.returncode == 7
    assert "--name" in done.stderr


def test_a_deadline_ends_a_study_between_samples(terminal: Terminal) -> None:
    """No sample starts after the deadline, and what was measured is kept."""
    study = write_study(terminal, spec=SPEC.replace("retries: 0", "retries: 0, deadline: 0.1s"))
    done = terminal.paceline("study", "spec.yaml")
    assert done.returncode == 130
    assert "deadline" in done.stderr
    assert len(runs_of(study)) == 1


def test_an_untouched_script_is_measured_from_outside(terminal: Terminal) -> None:
    """A script that reports nothing gives wall times, and extractors read its output."""
    script = "import time\ntime.sleep(0.2)\nprint('Epoch 0 took: 1.5 seconds')\n"
    spec = SPEC.replace("unit: item", "extract: {epoch_s: 'took: ([0-9.]+)'}")
    study = write_study(terminal, script, spec)
    done = terminal.paceline("study", "spec.yaml")
    assert done.returncode == 0, done.stderr
    tidy = list(csv.DictReader((study / "samples.csv").read_text().splitlines()))
    assert {row["epoch_s"] for row in tidy} == {"1.5"}
    assert all(float(row["wall_s"]) > 0.2 for row in tidy)
    assert {row["items_per_s"] for row in tidy} == {""}


@pytest.mark.parametrize("form", ["text", "csv", "json", "markdown"])
def test_a_report_can_be_had_in_every_form(terminal: Terminal, form: str) -> None:
    """`report` shows a study again, also from another folder."""
    study = write_study(terminal)
    terminal.paceline("study", "spec.yaml")
    by_name = terminal.paceline("report", "scaling", "--format", form)
    assert by_name.returncode == 0, by_name.stderr
    assert by_name.stdout.strip()
    by_folder = terminal.paceline("report", str(study), "-f", form, "-o", "out.txt")
    assert by_folder.returncode == 0, by_folder.stderr
    assert (terminal.folder / "out.txt").read_text().strip() == by_name.stdout.strip()


def test_two_studies_are_compared(terminal: Terminal) -> None:
    """`report A B` shows both side by side, as text and as a page beside the second."""
    study = write_study(terminal, spec=SPEC.replace("[1, 2]", "[1]"))
    assert terminal.paceline("study", "spec.yaml").returncode == 0
    assert terminal.paceline("study", "spec.yaml", "--name", "again").returncode == 0
    done = terminal.paceline("report", "scaling", "again")
    assert done.returncode == 0, done.stderr
    assert "1 x 1" in done.stdout
    page = terminal.paceline("report", "scaling", "again", "-f", "html").stdout.strip()
    assert page == str(study.with_name("again") / "comparison-with-scaling.html")
    assert Path(page).read_text().startswith("<!doctype html>")
    missing = terminal.paceline("report", "scaling", "nobody")
    assert missing.returncode == 8


def test_a_detached_study_goes_on_without_its_terminal(terminal: Terminal) -> None:
    """`study --detach` returns its name at once; the study comes to its end, or is ended."""
    study = write_study(terminal, REPORTING.replace("0.05", "0.3"))
    begun = json.loads(terminal.paceline("study", "spec.yaml", "--detach", "--json").stdout)
    assert begun["name"] == "scaling"
    assert not (study / "report.html").exists()
    wait_until((study / "plan.json").exists)
    os.killpg(begun["pid"], signal.SIGTERM)
    wait_until(lambda: "goes on from there" in Path(begun["log"]).read_text())
    again = terminal.paceline("study", "spec.yaml", "-d")
    assert (again.returncode, again.stdout) == (0, "scaling\n")
    wait_until(lambda: "report: " in Path(begun["log"]).read_text())
    assert len({run["sample_id"] for run in runs_of(study) if run["state"] == "succeeded"}) == 4
    wait_until(lambda: terminal.processes() == [])


def test_a_detached_study_that_cannot_start_says_so(terminal: Terminal) -> None:
    """Mistakes are said where the study was asked for, and nothing is left running."""
    write_study(terminal)
    wrong = terminal.paceline("study", "spec.yaml", "-d", "--set", "study.samples=none")
    assert wrong.returncode == 2
    assert terminal.results() == []
    wide = terminal.paceline(
        "study", "spec.yaml", "-d", "-s", "study.grid={nodes: [3]}", "-s", "job.script=train.py"
    )
    assert wide.returncode in (0, 5)  # a slow machine has not found out yet
    wait_until(lambda: terminal.processes() == [])
    said = (terminal.folder / "paceline-results" / "scaling.log").read_text()
    assert "does not fit" in said
