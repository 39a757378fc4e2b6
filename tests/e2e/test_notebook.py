"""`paceline notebook`: a real JupyterLab behind a tunnel, whose cells run on all hosts."""

from __future__ import annotations

import http.client
import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from paceline.rehearsal.hosts import SshHost
from tests.fakes.terminal import Terminal

pytestmark = [pytest.mark.e2e, pytest.mark.torch]


@pytest.fixture
def hosts(lab: tuple[SshHost, ...], terminal: Terminal) -> Iterator[tuple[SshHost, ...]]:
    """Return two hosts that a spec in the terminal's folder names."""
    entries = "".join(
        f"    - {{address: {host.address}, key: {host.user_key}, host_key: {host.host_key}}}\n"
        for host in lab
    )
    terminal.file(
        "spec.yaml",
        f"cluster:\n  provider: hosts\n  hosts:\n{entries}runtime: {{python: {sys.executable}}}\n",
    )
    yield lab
    terminal.paceline("notebook", "--stop")


def asked(url: str, path: str, token: str | None) -> int:
    """Return the status with which JupyterLab answers a request."""
    line = http.client.HTTPConnection(urlsplit(url).netloc, timeout=20)
    line.request("GET", path, headers={} if token is None else {"Authorization": f"token {token}"})
    status = line.getresponse().status
    line.close()
    return status


def test_a_notebook_runs_on_all_hosts(hosts: tuple[SshHost, ...], terminal: Terminal) -> None:
    """It answers through the tunnel, to its token only; its example trains on both hosts."""
    holding = terminal.start("notebook", "spec.yaml", "--json")
    assert holding.stdout is not None
    lines = ""
    while not lines.endswith("}\n"):
        line = holding.stdout.readline()
        assert line, holding.communicate()[1]
        lines += line
    url = json.loads(lines)["url"]
    token = parse_qs(urlsplit(url).query)["token"][0]
    contents = "/api/contents/all-hosts.ipynb"
    assert (asked(url, contents, token), asked(url, contents, None)) == (200, 403)
    run_id = json.loads(lines)["run_id"]
    assert run_the_example(hosts[0], run_id) == []

    holding.send_signal(signal.SIGINT)
    _, said = holding.communicate(timeout=60)
    assert holding.returncode == 130
    assert "JupyterLab goes on" in said
    stopped = terminal.paceline("notebook", "--stop", "--json")
    assert stopped.returncode == 0, stopped.stderr
    folder = Path(json.loads(stopped.stdout)["folder"])
    assert "loss" in (folder / "out" / "done.ipynb").read_text()
    for path in (*folder.rglob("*.log"), *folder.rglob("*.json")):
        assert token not in path.read_text(), path
    assert terminal.paceline("notebook", "--stop").returncode != 0


def run_the_example(host: SshHost, run_id: str) -> list[str]:
    """Execute the example where a kernel would, and return the errors of its cells."""
    folder = host.home / ".paceline" / "jobs" / run_id
    job = json.loads((folder / "job.json").read_text())
    env = {**job["processes"][0]["env"], "HOME": str(host.home), "PATH": "/usr/bin:/bin"}
    env["RES_OPTIONS"] = "timeout:1 attempts:1"  # as for whoever logs in there
    convert = (sys.executable, "-m", "nbconvert", "--to", "notebook", "--execute", "--allow-errors")
    argv = ("env", *(f"{k}={v}" for k, v in env.items()), *convert, "--output", "done.ipynb")
    done = subprocess.run(
        host.lab.inside((*argv, "all-hosts.ipynb")), cwd=folder / "out",
        capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    made = json.loads((folder / "out" / "done.ipynb").read_text())
    outputs = [out for cell in made["cells"] for out in cell.get("outputs", ())]
    text = "".join("".join(out.get("text", ())) for out in outputs)
    assert "[0] epoch 2: loss" in text
    assert "[1] epoch 2: loss" in text
    return [str(out["evalue"]) for out in outputs if out["output_type"] == "error"]


def test_a_host_without_jupyterlab_is_named(lab: tuple[SshHost, ...], terminal: Terminal) -> None:
    """The message holds the line to type; nothing was started."""
    python = shutil.which("python3", path="/usr/bin")
    if python is None:
        pytest.skip("there is no second Python here")
    host = lab[0]
    entry = f"{{address: {host.address}, key: {host.user_key}, host_key: {host.host_key}}}"
    terminal.file(
        "bare.yaml",
        f"cluster: {{provider: hosts, hosts: [{entry}]}}\nruntime: {{python: {python}}}\n",
    )
    done = terminal.paceline("notebook", "bare.yaml")
    assert done.returncode == 3
    assert f"ssh {host.address} {python} -m pip install jupyterlab" in done.stderr
    assert terminal.results() == []
