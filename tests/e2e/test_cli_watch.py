"""Looking on from another terminal while a study or a run goes on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from paceline import api
from paceline.app.observers import Nobody
from paceline.errors import NotFound
from tests.fakes.terminal import Terminal, wait_until

pytestmark = pytest.mark.e2e

PATIENT = """\
import os, pathlib, time
from paceline.events import Reporter

gate = pathlib.Path(os.environ["GATE"])
with Reporter() as progress:
    for index in range(4):
        time.sleep(0.05)
        progress.iteration(0, index, of=4, items=8, data_s=0.0, wait_s=0.0, metrics={"loss": 0.5})
    while not gate.exists():
        time.sleep(0.05)
    progress.epoch(0)
"""
SPEC = """\
name: seen
cluster: {price_usd_per_hour: 36}
job: {script: train.py, unit: item, env: {GATE: GATE_PATH}, oversubscribe: true}
study: {grid: {procs_per_node: [2]}, samples: 1, warmup: 1, measure: epoch}
"""


def begin(terminal: Terminal) -> Path:
    """Write a study whose runs wait for a gate to open; return the gate."""
    gate = terminal.folder / "gate"
    terminal.file("train.py", PATIENT)
    terminal.file("spec.yaml", SPEC.replace("GATE_PATH", str(gate)))
    return gate


def running(terminal: Terminal) -> bool:
    """Whether a run goes on whose ranks have said all that they say before the gate opens."""
    return any(
        path.read_text().count('"iteration"') == 4 for path in terminal.home.rglob("rank-0.jsonl")
    )


def test_a_study_is_seen_from_another_terminal(terminal: Terminal) -> None:
    """Ranks while they run, samples as they come, money, and the end; the study is not touched."""
    gate = begin(terminal)
    study = terminal.start("study", "spec.yaml")
    wait_until(lambda: running(terminal))
    eye = terminal.start("watch")
    assert eye.stdout is not None
    lines = [eye.stdout.readline()]
    while "loss 0.5" not in lines[-1]:
        assert lines[-1], "it ended without having seen the ranks"
        lines.append(eye.stdout.readline())
    assert "iteration 4/4" in lines[-1]
    assert "item/s" in lines[-1]
    gate.touch()
    rest, errors = eye.communicate(timeout=120)
    study.communicate(timeout=120)
    assert (study.returncode, eye.returncode) == (0, 0), errors
    assert "study seen: 2 samples" in lines[0]
    assert "[2/2]" in rest
    assert "USD spent" in rest
    assert "seen is complete" in errors


def test_one_run_is_seen_as_well(terminal: Terminal) -> None:
    """A run that was detached is shown until it ends, and says how it stands then."""
    gate = begin(terminal)
    run_id = terminal.paceline("train", "spec.yaml", "--detach").stdout.strip()
    wait_until(lambda: running(terminal))
    eye = terminal.start("watch", run_id)
    assert eye.stdout is not None
    first = eye.stdout.readline()
    assert f"{run_id}: epoch 1, iteration" in first
    gate.touch()
    _, errors = eye.communicate(timeout=120)
    assert eye.returncode == 0, errors
    assert run_id in errors
    done = json.loads(terminal.paceline("wait", run_id, "--json").stdout)
    assert done["state"] == "succeeded"


def test_looking_at_what_nobody_works_on_ends(terminal: Terminal) -> None:
    """A study that was killed is shown as far as it is, with the way to go on."""
    begin(terminal)
    study = terminal.start("study", "spec.yaml")
    wait_until(lambda: running(terminal))
    study.kill()
    study.communicate(timeout=60)
    (left,) = (terminal.folder / "paceline-results/seen/runs").iterdir()
    assert terminal.paceline("stop", left.name).returncode == 0
    seen = terminal.paceline("watch", "seen")
    assert seen.returncode == 0, seen.stderr
    assert "nobody is at work on it" in seen.stderr


def test_a_study_that_was_just_begun_is_waited_for(terminal: Terminal) -> None:
    """Whoever looks before the study is written down is told to wait, and sees it then."""
    begin(terminal).touch()
    eye = terminal.start("watch", "seen")
    assert eye.stderr is not None
    assert "there is no seen yet" in eye.stderr.readline()
    assert terminal.paceline("study", "spec.yaml").returncode == 0
    said, errors = eye.communicate(timeout=120)
    assert eye.returncode == 0, errors
    assert "seen is complete" in errors
    assert "study seen: 2 samples" in said


def test_a_name_that_never_comes_is_not_found(terminal: Terminal) -> None:
    """When patience is over, the words say that there is no such thing."""
    with pytest.raises(NotFound, match="nobody"):
        api.watch(
            "nobody", results=terminal.folder / "paceline-results",
            observer=Nobody(), patience_s=0.6,
        )  # fmt: skip


def test_there_may_be_nothing_to_see(terminal: Terminal) -> None:
    """Before anything was started, the words say so."""
    done = terminal.paceline("watch")
    assert done.returncode == 8
    assert "nothing goes on" in done.stderr
