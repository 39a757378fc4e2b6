"""The rehearsal's settings for other tools."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from paceline.api import rehearsing
from paceline.rehearsal.daemon.card import Card
from paceline.rehearsal.daemon.folder import Folder
from paceline.supervisor import procfs


def test_settings_of_the_users_own_are_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A profile or a token that would go before the rehearsal's key has to be taken back."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PACELINE_HOME", str(tmp_path))
    monkeypatch.setenv("AWS_PROFILE", "work")
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    folder = Folder(tmp_path / "rehearsal")
    folder.path.mkdir()
    card = Card(
        pid=os.getpid(), mark=procfs.mark_of(os.getpid()) or "", url="http://127.0.0.1:1",
        key_id="AKIA", region="us-east-1", caller="198.18.1.1", control="/x",
        started_at=0.0, bandwidth="scaled", letters="abc123",
    )  # fmt: skip
    card.write(folder.card)
    made, foreign = rehearsing.rehearsal_settings()
    assert foreign == ("AWS_PROFILE",)
    assert (made["AWS_ACCESS_KEY_ID"], made["AWS_REGION"]) == ("AKIA", "eu-west-1")
