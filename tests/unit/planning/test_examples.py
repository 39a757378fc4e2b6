"""Every example is a spec that can be planned, and its scripts run."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from paceline.events import Epoch, Iteration, parse_events
from paceline.model.host import Cluster, Host, HostFacts
from paceline.model.plan import RunPlan
from paceline.model.spec import Spec, load_spec
from paceline.planning.run import plan_run
from paceline.planning.study import plan_study

ROOT = Path(__file__).parents[3]
EXAMPLES = sorted((ROOT / "examples").glob("*.yaml"))
CORES = 2


def hosts_of(spec: Spec) -> dict[str, HostFacts]:
    """Return the hosts that an example asks for, each with as few cores as people may have."""
    wanted = [
        spec.cluster.nodes or 1,
        len(spec.cluster.hosts),
        *(spec.study.grid or {}).get("nodes", ()),
    ]
    names = [f"host{number}" for number in range(max(int(count) for count in wanted))]
    return {name: HostFacts(name, cores=CORES) for name in names}


def first_run(example: Path, folder: Path) -> RunPlan:
    """Return the plan of the first sample of an example."""
    spec = load_spec(example)
    facts = hosts_of(spec)
    study = plan_study(spec, tuple(facts.values()))
    hosts = tuple(Host(name, f"192.0.2.{n}", f"10.0.0.{n}") for n, name in enumerate(facts, 1))
    return plan_run(
        spec,
        study.samples[0].configuration,
        Cluster("here", "local", hosts),
        facts,
        "r1",
        job_folder=str(folder),
        python=sys.executable,
        import_path=str(ROOT / "src"),
        port=29500,
        measured=True,
    )


def test_there_are_examples() -> None:
    """The examples that the documents name are there."""
    names = {path.name for path in EXAMPLES}
    assert {"local-dcgan.yaml", "mlp.yaml", "own-script.yaml", "silent-script.yaml"} <= names


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_can_be_planned(example: Path, tmp_path: Path) -> None:
    """It loads without mistakes, bears its own name, and leads to commands on two cores."""
    spec = load_spec(example)
    assert spec.name == example.stem
    assert plan_study(spec, tuple(hosts_of(spec).values())).samples
    assert first_run(example, tmp_path).hosts[0].processes


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_names_the_schema(example: Path) -> None:
    """Its first line tells an editor where the schema is, and it is there."""
    first = example.read_text(encoding="utf-8").splitlines()[0]
    hint, _, schema = first.partition("$schema=")
    assert hint == "# yaml-language-server: "
    assert (example.parent / schema).is_file()


def test_the_fabric_script_takes_what_the_study_takes() -> None:
    """Without a word about it, its configurations are those of the spec for the same hosts."""
    script = runpy.run_path(str(ROOT / "examples/fabric/experiment.py"))
    spec = load_spec(ROOT / "examples/experiment.yaml")
    planned = {
        one.configuration for one in plan_study(spec, tuple(hosts_of(spec).values())).samples
    }
    assert {(one.nodes, one.procs_per_node) for one in planned} == set(script["usual"](2))


def test_the_own_script_reports_every_iteration(tmp_path: Path) -> None:
    """The planned command of the example runs, and its events are there to be measured."""
    run = first_run(ROOT / "examples" / "own-script.yaml", tmp_path)
    (tmp_path / "events").mkdir()
    output = _run(run)
    assert "y = 3." in output
    with (tmp_path / "events" / "rank-0.jsonl").open() as lines:
        events = list(parse_events(lines))
    assert sum(isinstance(event, Iteration) for event in events) == 200
    assert sum(isinstance(event, Epoch) for event in events) == 1


def test_the_silent_script_prints_what_the_spec_extracts(tmp_path: Path) -> None:
    """Every extractor of the example finds its number in the output of the planned command."""
    import re

    example = ROOT / "examples" / "silent-script.yaml"
    output = _run(first_run(example, tmp_path))
    for name, pattern in load_spec(example).job.extract.items():
        assert re.search(pattern, output), name


def _run(run: RunPlan) -> str:
    command = run.hosts[0].processes[0].command
    env = {**os.environ, **command.plain_env()}
    done = subprocess.run(
        command.argv, env=env, cwd=command.cwd, capture_output=True, text=True, check=True
    )
    return done.stdout
