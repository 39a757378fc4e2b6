"""A notebook as a plan: what each host does, and what must not be seen."""

from __future__ import annotations

import json

import pytest

from paceline.app.notebook import example
from paceline.crew import CREW_VARIABLE, SECRET_VARIABLE
from paceline.errors import PlanError
from paceline.model.host import Cluster, Host, HostFacts
from paceline.model.plan import JobPlace, RunPlan
from paceline.model.spec import load_spec
from paceline.planning.notebook import TOKEN_VARIABLE, plan_notebook
from paceline.store.codec import plan_to_plain

PAIR = Cluster(
    "c", "hosts", (Host("a", "192.0.2.1", "10.0.0.1"), Host("b", "192.0.2.2", "10.0.0.2"))
)
PLACES = {
    "a": JobPlace("/jobs/n", "python3", "/pkg"),
    "b": JobPlace("/jobs/n", "python3", "/pkg", rank_python="/venv/bin/python"),
}


def planned(port_of_b: int | None = 7000) -> RunPlan:
    """Return the plan of a notebook on two hosts."""
    facts = {
        "a": HostFacts("a", cores=4, interface="eth0"),
        "b": HostFacts("b", cores=2, interface="ens5", free_port=port_of_b),
    }
    spec = load_spec({"job": {"procs_per_node": 2}}, ())
    return plan_notebook(spec, PAIR, facts, PLACES, "n", port=8888, token="t0ken", secret="s3cret")


def test_the_first_host_serves_its_loopback_and_the_others_wait() -> None:
    """JupyterLab listens nowhere else; each further host waits for calls at its own free port."""
    first, second = (host.processes[0] for host in planned().hosts)
    assert first.command.argv[:3] == ("python3", "-m", "jupyterlab")
    assert "--ServerApp.ip=127.0.0.1" in first.command.argv
    assert "--ServerApp.port=8888" in first.command.argv
    assert second.command.argv == ("/venv/bin/python", "-m", "paceline.crew", "serve", "7000")
    crew = json.loads(str(first.command.env[CREW_VARIABLE]))
    assert [(item["address"], item["port"], item["procs"]) for item in crew] == [
        ("10.0.0.1", None, 2),
        ("10.0.0.2", 7000, 2),
    ]


def test_token_and_secret_stand_in_no_record() -> None:
    """They are on no command line, and hidden where the plan is written down."""
    plan = planned()
    for host in plan.hosts:
        env = host.processes[0].command.plain_env()
        assert env[SECRET_VARIABLE] == "s3cret"
        assert "s3cret" not in " ".join(host.processes[0].command.argv)
    assert plan.hosts[0].processes[0].command.plain_env()[TOKEN_VARIABLE] == "t0ken"
    assert TOKEN_VARIABLE not in plan.hosts[1].processes[0].command.env
    written = json.dumps(plan_to_plain(plan))
    assert "t0ken" not in written
    assert "s3cret" not in written


def test_a_host_without_a_free_port_is_named() -> None:
    """Nothing is started where a host could not be called."""
    with pytest.raises(PlanError, match="b: no free port"):
        planned(port_of_b=None)


def test_the_example_is_a_notebook() -> None:
    """It is valid JSON of the format, and its cells compile but for the magics."""
    made = json.loads(example())
    assert made["nbformat"] == 4
    cells = ["".join(cell["source"]) for cell in made["cells"] if cell["cell_type"] == "code"]
    assert any(cell.startswith("%%ranks") for cell in cells)
    for cell in cells:
        code = "\n".join(line for line in cell.splitlines() if not line.startswith("%"))
        compile(code, "cell", "exec")
