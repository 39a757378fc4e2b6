"""The layer below a machine: what it shows of this machine, and what it hides."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from paceline.rehearsal.machines.base import make_base


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
@pytest.mark.parametrize("top", ["tmp", "root", "home"])
def test_a_python_that_lies_in_an_odd_place(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, top: str
) -> None:
    """Where this program's Python is shown, the folders above it are as anywhere else."""
    monkeypatch.setattr(sys, "prefix", f"/{top}/anna/venv")
    make_base(tmp_path / "base")
    modes = {one: (tmp_path / "base" / one).stat().st_mode & 0o7777 for one in ("tmp", "root")}
    assert modes == {"tmp": 0o1777, "root": 0o711}
    assert list((tmp_path / "base" / top / "anna").iterdir()) != []
