"""The trainer's gauge: products and all-reduces."""

from __future__ import annotations

import json

import pytest
import torch

from paceline.trainer import gauge

pytestmark = pytest.mark.torch


def test_products_are_measured_in_both_precisions(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is a figure for each precision, by one thread and by all."""
    monkeypatch.setattr(gauge, "_SIDE", 64)
    monkeypatch.setattr(gauge, "_GEMM_S", 0.01)
    monkeypatch.setattr(torch, "set_num_threads", lambda _: None)
    assert gauge.main(["gemm", "2"]) == 0
    found = json.loads(capsys.readouterr().out)
    names = {f"{kind}_gflops_{words}" for kind in ("fp32", "bf16") for words in ("one", "all")}
    assert set(found) == names
    assert all(value > 0 for value in found.values())


def test_a_rank_alone_adds_up_with_itself(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each size has its time."""
    place = {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0"}
    for name, value in place.items():
        monkeypatch.setenv(name, value)
    assert gauge.main(["all_reduce", "4", "4096"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [item["size_bytes"] for item in found] == [4, 4096]


def test_words_that_are_not_known_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """A wrong word is answered with the right ones."""
    assert gauge.main(["measure"]) == 2
    assert "gemm THREADS" in capsys.readouterr().err
