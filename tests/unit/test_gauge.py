"""The gauge: what arrives is counted, and a peer that is not there is named."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from paceline import gauge


def test_a_link_is_measured_by_what_arrives() -> None:
    """The figures are those of the receiving end."""
    argv = [sys.executable, "-m", "paceline.gauge", "serve", "127.0.0.1", "20"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as serving:
        assert serving.stdout is not None
        port = json.loads(serving.stdout.readline())["port"]
        found = gauge.dial("127.0.0.1", ("127.0.0.1", port), 0.2)
        serving.kill()
    assert found["trouble"] is None
    assert found["gbit_per_s"] > 0.01
    assert 0 < found["round_trip_ms"] < 1000


def test_a_peer_that_does_not_listen_is_named() -> None:
    """What cannot be measured is None, with the reason."""
    found = gauge.dial("", ("127.0.0.1", 1), 0.1)
    assert found["gbit_per_s"] is None
    assert "refused" in str(found["trouble"]).lower()


def test_an_address_that_is_not_ours_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """A host that cannot listen says so in its first line."""
    assert gauge.main(["serve", "192.0.2.1", "1"]) == 0
    assert json.loads(capsys.readouterr().out)["port"] is None


def test_memory_is_measured(capsys: pytest.CaptureFixture[str]) -> None:
    """One thread and several are measured apart."""
    assert gauge.main(["memory", "2"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found) == {"memory_gb_per_s_one", "memory_gb_per_s_all"}
    assert all(value > 0 for value in found.values())
