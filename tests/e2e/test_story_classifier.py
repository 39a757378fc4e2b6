"""The story of the classifier: 28x28 images on two machines, from the page's own commands."""

from __future__ import annotations

import os
import signal
import sys
import urllib.request

import pytest

from paceline.rehearsal.hosts import SshHost
from tests.fakes.terminal import Terminal
from tests.fakes.tutorial import Tutorial

pytestmark = [pytest.mark.e2e, pytest.mark.torch]
pytest.importorskip("torch")


@pytest.fixture
def tutorial(lab: tuple[SshHost, ...], terminal: Terminal) -> Tutorial:
    """Return the page, read by somebody whose two hosts answer to a key of their ssh config."""
    hosts = {"203.0.113.10": lab[0].address, "203.0.113.11": lab[1].address}
    made = Tutorial("5-classifier", terminal, hosts)
    made.log_in_with(lab[0].user_key)
    here = {"python: python3}": f"python: {sys.executable}}}", "dataset: mnist": "dataset: fake"}
    # These hosts share the cores of one machine.
    small = {"epochs: 5": "epochs: 1", "program: mlp": "program: mlp\n  threads: 1"}
    made.example("classifier.yaml", {**here, **small})
    made.example("distributed_train.py", {"2000": "320"})
    return made


def test_the_classifier_on_two_machines(tutorial: Tutorial) -> None:
    """The variables are set for the user; the trainer and the user's own script learn on both."""
    tutorial.see("paceline doctor")
    said = tutorial.see("paceline run")
    assert sorted(line.split(":")[0] for line in said.splitlines()) == [
        f"rank {rank} of 2 meets at {tutorial.word('203.0.113.10')}" for rank in range(2)
    ]
    lines = tutorial.see("paceline train").splitlines()
    took = sorted(line.partition(" took")[0] for line in lines if "Epoch 0 took" in line)
    assert took == ["[rank: 0] Epoch 0", "[rank: 1] Epoch 0"]
    own = tutorial.see("paceline train")
    assert [line.partition(" done")[0] for line in own.splitlines() if "done" in line] == [
        f"epoch {epoch}" for epoch in range(5)
    ]
    look_into_the_notebook(tutorial)
    assert "classifier" in tutorial.see("paceline ls")
    tutorial.expect_end()


def look_into_the_notebook(tutorial: Tutorial) -> None:
    """Open the notebook's address, press Ctrl-C, and end JupyterLab."""
    holding = tutorial.begin("paceline notebook examples")
    assert holding.stdout is not None
    address = holding.stdout.readline().decode().strip()
    with urllib.request.urlopen(address, timeout=30) as page:  # noqa: S310 - our own loopback
        assert "JupyterLab" in page.read().decode()
    os.killpg(holding.pid, signal.SIGINT)
    holding.stdout.close()
    assert holding.wait(60) == 130
    tutorial.see("paceline notebook --stop")
