"""Adaptive studies, probes and advice from the command line, with real processes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.fakes.terminal import Terminal

pytestmark = pytest.mark.e2e

# Its pace does not depend on how busy the machine is: an answer that is clear stays clear.
PACED = """\
import argparse, time
from paceline.events import Reporter

parser = argparse.ArgumentParser()
parser.add_argument("--pause", type=float)
parser.add_argument("--epochs", type=int, default=1)
options = parser.parse_args()
with Reporter() as progress:
    for epoch in range(options.epochs):
        for index in range(20):
            time.sleep(options.pause)
            progress.iteration(epoch, index, of=20, seconds=options.pause, items=4)
        progress.epoch(epoch)
"""
SPEC = """\
name: paced
cluster: {price_usd_per_hour: 0.5}
job: {script: paced.py}
study:
  baseline: {args: {pause: 0.04}}
  grid: {pause: [0.04, 0.02, 0.01]}
  samples: 3
  warmup: 3
  measure: epoch
"""


@pytest.fixture
def study(terminal: Terminal) -> Path:
    """Write the spec and its script; return the folder of the study's results."""
    terminal.file("paced.py", PACED)
    terminal.file("spec.yaml", SPEC)
    return terminal.folder / "paceline-results" / "paced"


def test_an_adaptive_study_needs_half_of_the_samples(terminal: Terminal, study: Path) -> None:
    """Each once, the best one twice; the answer is that of the full grid; nothing is missing."""
    done = terminal.paceline("study", "spec.yaml", "--adaptive")
    assert done.returncode == 0, done.stderr
    assert "adaptive: 4 of 9 planned samples were taken" in " ".join(done.stdout.split())
    assert len(list(study.glob("runs/*"))) == 4
    few = json.loads(terminal.paceline("advise", "paced", "--json").stdout)

    again = terminal.paceline("study", "spec.yaml")
    assert again.returncode == 0, again.stderr
    assert len(list(study.glob("runs/*"))) == 9
    full = json.loads(terminal.paceline("advise", "paced", "--json").stdout)
    for one, other in zip(few["choices"], full["choices"], strict=True):
        assert one["configuration"] == other["configuration"] == "nnode-1_nproc-1_pause-0.01"
        assert one["clear"]


@pytest.mark.usefixtures("study")
def test_advice_names_the_choice_and_a_command_that_works(terminal: Terminal) -> None:
    """The command that is advised runs the job, for as many epochs as were asked for."""
    assert terminal.paceline("study", "spec.yaml", "--samples", "1").returncode == 0
    asked = terminal.paceline("advise", "--epochs", "2", "--deadline", "1h", "--budget", "1usd")
    assert asked.returncode == 0, asked.stderr
    lines = asked.stdout.splitlines()
    answer = next(line for line in lines if line.startswith("Cheapest, fastest"))
    assert answer.endswith("pause 0.01")
    command = next(line.split() for line in lines if line.startswith("  paceline train"))
    done = terminal.paceline(*command[1:], "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["state"] == "succeeded"


def test_a_probe_is_a_short_study_with_advice(terminal: Terminal, study: Path) -> None:
    """One sample of each candidate, of so many iterations, and then the answer."""
    done = terminal.paceline("probe", "spec.yaml", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["study"] == "paced-probe"
    assert {item["samples"] for item in found["options"] if item["samples"]} == {1}
    assert found["choices"][0]["configuration"] == "nnode-1_nproc-1_pause-0.01"
    assert found["measure_next"] is None
    assert not study.exists()
