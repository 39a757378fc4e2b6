"""A study over two hosts, killed twice and resumed, has the report of an undisturbed one."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from paceline.rehearsal.hosts import SshHost
from tests.fakes.terminal import Terminal, wait_until

pytestmark = pytest.mark.e2e

# It tells times of its own making, so that two studies can be equal to the last digit.
SCRIPT = """\
import os, time
from paceline.events import Reporter

with Reporter() as progress:
    time.sleep(1.0)
    pace = 0.4 / int(os.environ["WORLD_SIZE"]) ** 0.5 + 0.001 * int(os.environ["RANK"])
    for index in range(12):
        progress.iteration(0, index, of=12, seconds=pace + 0.002 * (index % 3), items=4)
    progress.epoch(0, seconds=12 * pace)
"""
STUDY = """\
job: {script: train.py}
study: {grid: {nodes: [1, 2]}, samples: 2, warmup: 2, measure: epoch}
limits: {retries: 0}
"""
# What is of the day and not of the measurement.
_OF_THE_DAY = {"run_id", "wall_s", "started_at", "created_at", "provenance", "steal"}
_STOLEN = "of the CPU time"  # a note of what this machine's own host gave to others


@pytest.fixture
def spec(lab: tuple[SshHost, ...], terminal: Terminal) -> str:
    """Write a spec of four samples on one and two hosts; return its name."""
    entries = "".join(
        f"    - {{address: {host.address}, key: {host.user_key}, host_key: {host.host_key}}}\n"
        for host in lab
    )
    cluster = f"cluster:\n  provider: hosts\n  hosts:\n{entries}"
    terminal.file("train.py", SCRIPT)
    terminal.file("spec.yaml", f"{cluster}runtime: {{python: {sys.executable}}}\n{STUDY}")
    return "spec.yaml"


def records(study: Path) -> list[dict[str, Any]]:
    """Return the records of a study's runs, oldest first."""
    found = [json.loads(path.read_text()) for path in study.glob("runs/*/run.json")]
    return sorted(found, key=lambda record: float(record["created_at"]))


def lasting(value: Any) -> Any:
    """Return data without what is of the day."""
    if isinstance(value, dict):
        return {key: lasting(item) for key, item in value.items() if key not in _OF_THE_DAY}
    if isinstance(value, list):
        return [lasting(item) for item in value if not _is_of_the_day(item)]
    return value


def _is_of_the_day(item: object) -> bool:
    return isinstance(item, str) and _STOLEN in item


def kill_at_work(terminal: Terminal, spec: str, study: Path) -> None:
    """Start the study, and kill it while a run of its own is at work."""
    before = {record["run_id"] for record in records(study)}
    going = terminal.start("study", spec, "--name", "killed")
    wait_until(
        lambda: any(
            record["state"] == "running" and record["run_id"] not in before
            for record in records(study)
        )
    )
    going.send_signal(signal.SIGKILL)
    going.communicate(timeout=60)


def test_a_study_killed_twice_is_as_if_undisturbed(terminal: Terminal, spec: str) -> None:
    """Same samples in the same order, each counted once; same figures, same words."""
    results = terminal.folder / "paceline-results"
    quiet = terminal.paceline("study", spec, "--name", "killed", "--results", "undisturbed")
    assert quiet.returncode == 0, quiet.stderr

    for _ in range(2):
        kill_at_work(terminal, spec, results / "killed")
    last = terminal.paceline("study", spec, "--name", "killed")
    assert last.returncode == 0, last.stderr

    one, other = terminal.folder / "undisturbed" / "killed", results / "killed"
    orders = [
        [item["sample_id"] for item in records(study) if item["state"] == "succeeded"]
        for study in (one, other)
    ]
    assert orders[0] == orders[1]
    assert len(orders[0]) == len(set(orders[0])) == 4
    documents = [json.loads((study / "study.json").read_text()) for study in (one, other)]
    assert lasting(documents[0]) == lasting(documents[1])
    assert documents[0]["headline"] == documents[1]["headline"]
    assert (other / "report.html").stat().st_size > 100_000
