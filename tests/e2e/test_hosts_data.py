"""Data on several hosts: brought over their own links, verified there, and found by a training."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from paceline.rehearsal.hosts import SshHost
from tests.fakes.mnist import write_mnist
from tests.fakes.terminal import Terminal

pytestmark = pytest.mark.e2e
DATA = ("-s", "data.dataset=mnist", "-s", "job.program=mlp")


def where(host: SshHost) -> Path:
    """Return where MNIST belongs on a host."""
    return host.home / ".cache" / "paceline" / "data" / "mnist"


@pytest.fixture
def hosts(lab: tuple[SshHost, ...], terminal: Terminal) -> Iterator[tuple[SshHost, ...]]:
    """Return two hosts without data; the terminal's machine has a small MNIST."""
    entries = "".join(
        f"    - {{address: {host.address}, key: {host.user_key}, host_key: {host.host_key}}}\n"
        for host in lab
    )
    terminal.file(
        "spec.yaml",
        f"cluster:\n  provider: hosts\n  hosts:\n{entries}runtime: {{python: {sys.executable}}}\n",
    )
    write_mnist(terminal.home / "data" / "mnist")
    terminal.env["PACELINE_DATA"] = str(terminal.home / "data")
    yield lab
    for host in lab:
        shutil.rmtree(where(host), ignore_errors=True)


def test_data_come_to_all_hosts_and_doctor_compares_them(
    hosts: tuple[SshHost, ...], terminal: Terminal
) -> None:
    """What is here is brought there once; data that differ are named with their host."""
    words = ("data", "fetch", "mnist", "--spec", "spec.yaml", "--json")
    first = json.loads(terminal.paceline(*words).stdout)
    assert [item["host"] for item in first] == [host.address for host in hosts]
    assert all(item["received_bytes"] > 50_000 for item in first)
    assert len({item["digest"] for item in first}) == 1
    again = json.loads(terminal.paceline(*words).stdout)
    assert [item["received_bytes"] for item in again] == [0, 0]

    good = terminal.paceline("doctor", "spec.yaml", *DATA)
    assert good.returncode == 0, good.stdout + good.stderr
    for host in hosts:
        for what in ("python", "torch", "disk", "clock", "gpus", "data"):
            assert f"ok    {host.address}: {what}: " in good.stdout
    assert "2 hosts reach each other, both ways" in good.stdout

    images = where(hosts[1]) / "train-images-idx3-ubyte"
    images.write_bytes(images.read_bytes()[:-1] + b"\x07")
    bad = terminal.paceline("doctor", "spec.yaml", *DATA)
    assert bad.returncode == 3
    assert f"fail  {hosts[1].address}: data: the data set there is another one" in bad.stdout


@pytest.mark.torch
def test_a_training_brings_its_data(hosts: tuple[SshHost, ...], terminal: Terminal) -> None:
    """Without data a run is refused; with `data.download` they are brought before the start."""
    words = ("train", "spec.yaml", *DATA, "-s", "job.args.iterations=2")
    refused = terminal.paceline(*words)
    assert refused.returncode != 0
    assert "paceline data fetch mnist --hosts" in refused.stderr
    done = terminal.paceline(*words, "-s", "data.download=true")
    assert done.returncode == 0, done.stderr
    assert all(where(host).is_dir() for host in hosts)
