"""Starting and stopping a rehearsal: what is missing is named, what is not there is no trouble."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import pytest

from paceline.errors import Conflict, EnvironmentFault, MissingProgram, UsageError
from paceline.rehearsal.daemon import lifecycle
from paceline.rehearsal.daemon.folder import Folder
from paceline.rehearsal.machines.journal import Item, Journal
from paceline.rehearsal.machines.sweeping import checks, sweep

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The extra that is missing is named, with the words that install it."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(MissingProgram) as caught:
        lifecycle.start(Folder(tmp_path / "r"))
    assert "paceline[rehearsal]" in (caught.value.hint or "")
    assert not (tmp_path / "r").exists()


def test_without_root(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Whoever is not root is told so before anything is made."""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(EnvironmentFault, match="root"):
        lifecycle.start(Folder(tmp_path / "r"))
    assert not (tmp_path / "r").exists()


def test_somebody_else_than_root(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Who may not even see the rehearsal is told whose it is, not that there is none."""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    for act in (lifecycle.running, lifecycle.stop):
        with pytest.raises(EnvironmentFault, match="belongs to root") as caught:
            act(Folder(tmp_path))
        assert "sudo" in (caught.value.hint or "")
    assert lifecycle.running(Folder(tmp_path / "none")) is None


@needs_root
def test_root_takes_no_folder_from_its_user(tmp_path: Path) -> None:
    """What is made above the rehearsal's own folder belongs to the user whose place it is."""
    os.chown(tmp_path, 1234, 1234)
    folder = Folder(tmp_path / "state/paceline/rehearsal")
    with lifecycle._alone(folder):
        owners = {path: path.stat().st_uid for path in (folder.path, *folder.path.parents[:2])}
        assert list(owners.values()) == [0, 1234, 1234]
        assert folder.path.stat().st_mode & 0o077 == 0


def test_without_programs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """All packages that are missing are named at once."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(lifecycle, "_SEARCH", str(tmp_path))
    with pytest.raises(MissingProgram, match=r"nftables.*sudo"):
        lifecycle.start(Folder(tmp_path / "r"))


def test_nothing_to_stop(tmp_path: Path) -> None:
    """Stopping what is not up is done already, and makes nothing."""
    assert lifecycle.stop(Folder(tmp_path / "r")) == ()
    assert not (tmp_path / "r").exists()


@needs_root
def test_two_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While one starts or stops, another is refused; a rate that is none is refused before."""
    folder = Folder(tmp_path)
    monkeypatch.setattr(lifecycle, "_TURN_WITHIN_S", 0.1)
    with lifecycle._alone(folder), pytest.raises(Conflict):
        lifecycle.stop(folder)
    with pytest.raises(UsageError):
        lifecycle.start(folder, "fast")


def test_a_sweep_takes_what_the_journal_names_and_nothing_else(tmp_path: Path) -> None:
    """What others have beside it stays; what is left over is named."""
    journal = Journal(tmp_path / "journal")
    ours, other = tmp_path / "ours", tmp_path / "other"
    for folder in (ours, other):
        folder.mkdir()
        (folder / "file").write_text("x")
    journal.add((Item("folder", str(ours)), Item("file", str(tmp_path / "never made"))))
    before = checks(journal.held())
    assert [check.left for check in before if check.kind == "folders"] == [(str(ours),)]
    sweep(journal)
    assert not ours.exists()
    assert (other / "file").exists()
    assert journal.held() == ()
    assert not any(check.left for check in checks(journal.all()))
