"""The layer that makes a rehearsed machine of this machine's files."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

import pytest

from paceline.rehearsal.machines.base import make_base


@pytest.mark.skipif(os.geteuid() != 0, reason="layers need root")
@pytest.mark.parametrize("place", ["/tmp", "/root"])
def test_folders_keep_their_rights_wherever_python_lies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """A Python below /tmp or /root is shown, and they stay as open, or closed, as they are."""
    monkeypatch.setattr(sys, "prefix", f"{place}/somebody/venv")
    make_base(tmp_path / "base")
    inside = tmp_path / "base" / place.lstrip("/")
    assert stat.S_IMODE(inside.stat().st_mode) == {"/tmp": 0o1777, "/root": 0o711}[place]
    assert (inside / "somebody/venv").is_dir()
