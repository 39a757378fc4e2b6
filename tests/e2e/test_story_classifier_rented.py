"""The story of the classifier, its chapter on rented machines: all of it, no bill."""

from __future__ import annotations

import http
import os
import signal

import pytest

from tests.fakes.jupyter import Browser
from tests.fakes.mnist import write_mnist
from tests.fakes.terminal import Terminal
from tests.fakes.tutorial import REHEARSED, Tutorial

pytestmark = [pytest.mark.e2e, pytest.mark.torch]
pytest.importorskip("torch")
EPOCHS = 5


@pytest.fixture
def tutorial(rehearsed: Terminal) -> Tutorial:
    """Return the page, read by somebody with a small data set."""
    # It lies where `download: true` looks before it downloads.
    write_mnist(rehearsed.folder / "mnist")
    made = Tutorial("5-classifier", rehearsed, REHEARSED, rented=True)
    # These hosts share the cores of one machine.
    made.example("classifier-rented.yaml", {"program: mlp": "program: mlp\n  threads: 1"})
    made.example("distributed_train.py", {"2000": "320"})
    return made


def test_the_classifier_on_rented_machines(tutorial: Tutorial, rehearsed: Terminal) -> None:
    """Two machines train from the terminal and from a notebook, and are given back."""
    assert "2 x t3.medium" in tutorial.see("paceline plan")
    tutorial.see("paceline up")
    tutorial.see("paceline exec --on 0")
    said = tutorial.see("paceline run")
    assert sorted(line.rpartition(":")[0] for line in said.splitlines()) == [
        f"rank {rank} of 2 meets at 172.31.0.4" for rank in range(2)
    ]
    lines = tutorial.see("paceline train").splitlines()
    took = sorted(line.partition(" took")[0] for line in lines if " took: " in line)
    assert took == [f"[rank: {rank}] Epoch {epoch}" for rank in range(2) for epoch in range(EPOCHS)]
    own = tutorial.see("paceline train")
    assert [line.partition(",")[0] for line in own.splitlines() if " done, " in line] == [
        f"epoch {epoch} done" for epoch in range(EPOCHS)
    ]
    work_in_the_notebook(tutorial, rehearsed)
    assert "is gone" in tutorial.see("paceline down")
    tutorial.expect_an_empty_account()


def work_in_the_notebook(tutorial: Tutorial, rehearsed: Terminal) -> None:
    """Open the address, run every cell on both hosts, press Ctrl-C, and end JupyterLab."""
    holding = tutorial.begin("paceline notebook examples")
    assert holding.stdout is not None
    browser = Browser(holding.stdout.readline().decode().strip())
    assert "JupyterLab" in browser.page()
    contents = "/api/contents/all-hosts.ipynb"
    assert browser.look(contents)[0] == http.HTTPStatus.FORBIDDEN
    browser.run_all("all-hosts.ipynb")
    assert browser.errors == []
    for rank in range(2):
        assert f"node{rank} 172.31.0.{4 + rank}" in browser.said
        # The classifier that is written out in the notebook, and the trainer that is called.
        assert f"[{rank}] epoch 2: loss" in browser.said
        assert f"[{rank}] Rank: {rank}. World Size: 2" in browser.said
    os.killpg(holding.pid, signal.SIGINT)
    holding.stdout.close()
    assert holding.wait(60) == 130
    tutorial.see("paceline notebook --stop")
    results = rehearsed.folder / "paceline-results"
    assert [path.name for path in results.glob("notebook-*/out/*.ipynb")] == ["all-hosts.ipynb"]
