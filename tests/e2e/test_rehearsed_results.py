"""What was rehearsed is never taken for what was measured, and belongs to whose folder it is in."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.fakes.terminal import Terminal

pytestmark = pytest.mark.e2e

SCRIPT = """\
from paceline.events import Reporter

with Reporter() as progress:
    progress.iteration(0, 0, of=1, items=4)
    progress.epoch(0)
"""
SPEC = """\
name: seen
job: {script: train.py, oversubscribe: true, unit: item}
study: {grid: {procs_per_node: [1]}, samples: 1, warmup: 0, measure: epoch}
"""
SOMEBODY = 1234


@pytest.fixture
def results(terminal: Terminal) -> Path:
    """Return the results folder of somebody with a very short study."""
    terminal.file("train.py", SCRIPT)
    terminal.file("spec.yaml", SPEC)
    return terminal.folder / "paceline-results"


def take(terminal: Terminal, *, rehearsed: bool) -> str:
    """Take the study, and return what was said beside its findings."""
    terminal.env.pop("PACELINE_REHEARSAL", None)
    if rehearsed:
        terminal.env["PACELINE_REHEARSAL"] = str(terminal.home / "rehearsal")
    done = terminal.paceline("study", "spec.yaml")
    assert done.returncode == 0, done.stderr
    assert ("was rehearsed" in done.stdout) == rehearsed
    return done.stderr


def runs_of(study: Path) -> set[str]:
    """Return the ids of a study's runs."""
    return {path.parent.name for path in study.glob("runs/*/run.json")}


def test_a_rehearsed_study_is_not_the_real_one(terminal: Terminal, results: Path) -> None:
    """The same command without the flag measures anew; rehearsed samples lie aside, marked."""
    take(terminal, rehearsed=True)
    rehearsed = runs_of(results / "seen")
    said = take(terminal, rehearsed=False)
    (aside,) = results.glob("seen.rehearsed-*")
    assert str(aside) in said
    assert runs_of(aside) == rehearsed
    real = runs_of(results / "seen")
    assert len(real) == 1
    assert not real & rehearsed
    assert "rehearsed" not in json.loads((results / "seen/study.json").read_text())["provenance"]
    assert json.loads((aside / "study.json").read_text())["provenance"]["rehearsed"] is True
    for path in aside.glob("runs/*/run.json"):
        assert json.loads(path.read_text())["provenance"]["rehearsed"] is True


def test_what_was_measured_comes_back_after_a_rehearsal(terminal: Terminal, results: Path) -> None:
    """A rehearsal does not cost the real samples: they make way, come back, and count."""
    take(terminal, rehearsed=False)
    real = runs_of(results / "seen")
    take(terminal, rehearsed=True)
    assert not real & runs_of(results / "seen")
    take(terminal, rehearsed=False)
    assert runs_of(results / "seen") == real
    assert list(results.glob("seen.real-*")) == []


def test_under_sudo_results_belong_to_the_folder_s_owner(terminal: Terminal, results: Path) -> None:
    """What root makes in somebody's folder is theirs; what was there stays as it was."""
    if os.geteuid() != 0:
        pytest.skip("only root writes for others")
    before = terminal.file("before", "root's own")
    os.chown(terminal.folder, SOMEBODY, SOMEBODY)
    terminal.env |= {"SUDO_UID": str(SOMEBODY), "SUDO_GID": str(SOMEBODY)}
    take(terminal, rehearsed=True)
    made = [results, *results.rglob("*")]
    assert len(made) > 5
    assert {path.lstat().st_uid for path in made} == {SOMEBODY}
    assert before.stat().st_uid == 0
