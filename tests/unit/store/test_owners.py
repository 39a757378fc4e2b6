"""Whose results are under sudo."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from paceline.store import owners
from paceline.store.owners import hand_over, owner_under_sudo

SUDO = {"SUDO_UID": "1234", "SUDO_GID": "1234"}


def test_without_sudo_nothing_is_handed_over(tmp_path: Path) -> None:
    """Whoever is root by themselves keeps what they make."""
    assert owner_under_sudo(tmp_path / "results", {}, time.time()) is None
    assert owner_under_sudo(tmp_path / "results", {"SUDO_UID": "1234"}, time.time()) is None


def test_only_what_is_new_single_and_real_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files and folders made since are given; links' targets, second names and old ones are not."""
    given: list[str] = []
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(owners, "_ROOT", os.getuid())
    monkeypatch.setattr(
        os,
        "chown",
        lambda path, *_, **how: (
            given.append(Path(path).name)
            if not how["follow_symlinks"]
            else pytest.fail("a link was followed")
        ),
    )
    place = tmp_path / "results"
    place.mkdir()
    old = place / "old"
    old.touch()
    owner = owners.Owner(7, 7, place, (), old.stat().st_ctime + 0.001)
    time.sleep(0.05)
    (place / "run").mkdir()
    (place / "run/new").touch()
    (place / "link").symlink_to(tmp_path)
    (tmp_path / "elsewhere").touch()
    os.link(tmp_path / "elsewhere", place / "second")
    hand_over(owner)
    assert sorted(given) == ["link", "new", "results", "run"]


def test_nobody_is_asked_where_the_folder_is_root_s(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a folder of root's own, results are root's, and elsewhere the place's owner gets them."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(owners, "_ROOT", os.getuid())
    assert owner_under_sudo(tmp_path / "results", SUDO, 5.0) is None
    monkeypatch.setattr(owners, "_ROOT", os.getuid() + 1)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    found = owner_under_sudo(tmp_path / "a/results", SUDO, 5.0)
    assert found is not None
    assert (found.uid, found.above) == (os.getuid(), (tmp_path / "a",))
