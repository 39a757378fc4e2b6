"""Which files of a working folder travel."""

from __future__ import annotations

from pathlib import Path

import pytest

from paceline.app import tree as tree_module
from paceline.app.tree import DOCKER_IGNORES, tree_of
from paceline.errors import PlanError


def lay(root: Path, *names: str) -> None:
    """Make files, each with its own name in it."""
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)


def test_ignored_files_stay(tmp_path: Path) -> None:
    """Rules of both files hold, those of a subfolder there, and the last one counts."""
    lay(
        tmp_path,
        "train.py", "notes.log", "keep.log", "data/big.bin", "sub/.x", "sub/a.tmp",
        "sub/deep/b.tmp", "secret.txt",
    )  # fmt: skip
    (tmp_path / ".gitignore").write_text("*.log\n!keep.log\n/data/\n")
    (tmp_path / ".pacelineignore").write_text("secret.txt\n")
    (tmp_path / "sub" / ".gitignore").write_text("*.tmp\n!deep/b.tmp\n")
    assert sorted(tree_of(tmp_path).files) == [
        ".gitignore", ".pacelineignore", "keep.log", "sub/.gitignore", "sub/.x",
        "sub/deep/b.tmp", "train.py",
    ]  # fmt: skip


def test_rules_of_the_repository_hold_in_its_subfolders(tmp_path: Path) -> None:
    """A project below the top of its repository heeds the top's rules; without one, none."""
    lay(tmp_path, "project/a.py", "project/b.dat")
    (tmp_path / ".gitignore").write_text("*.dat\n")
    assert sorted(tree_of(tmp_path / "project").files) == ["a.py", "b.dat"]
    (tmp_path / ".git").mkdir()
    assert sorted(tree_of(tmp_path / "project").files) == ["a.py"]


def test_what_is_never_wanted_stays(tmp_path: Path) -> None:
    """Results, repositories, environments and caches never travel, whatever they are called."""
    lay(
        tmp_path,
        "a.py", "out/study.json", "__pycache__/x.pyc", "myenv/pyvenv.cfg", "myenv/bin/python",
        "paceline-results/run", ".git/config", "pkg/__pycache__/c", "pkg/m",
    )  # fmt: skip
    assert sorted(tree_of(tmp_path, never=(tmp_path / "out",)).files) == ["a.py", "pkg/m"]


def test_links(tmp_path: Path) -> None:
    """A link inside stays a link, one to a file outside becomes it, a broken one is left out."""
    (tmp_path / "outside.txt").write_text("outside")
    root = tmp_path / "root"
    lay(root, "a.txt", "folder/b")
    (root / "inner").symlink_to("a.txt")
    (root / "outer").symlink_to(tmp_path / "outside.txt")
    (root / "dir").symlink_to("folder")
    (root / "broken").symlink_to(tmp_path / "nowhere")
    tree = tree_of(root)
    assert tree.links == {"inner": "a.txt", "dir": "folder"}
    assert tree.files["outer"].source.read_text() == "outside"
    assert "broken" not in tree.files


def test_dockers_rules_are_meant_from_the_top(tmp_path: Path) -> None:
    """`.dockerignore` names paths from the top only; one that takes back leaves it to docker."""
    lay(tmp_path, "x.bin", "sub/x.bin", "Dockerfile")
    (tmp_path / ".dockerignore").write_text("x.bin\n")
    names = sorted(tree_of(tmp_path, ignores=DOCKER_IGNORES).files)
    assert names == [".dockerignore", "Dockerfile", "sub/x.bin"]
    (tmp_path / ".dockerignore").write_text("*\n!Dockerfile\n")
    assert len(tree_of(tmp_path, ignores=DOCKER_IGNORES).files) == 4


def test_a_folder_that_is_too_large_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody's whole disk is not sent; the message says how to go on."""
    monkeypatch.setattr(tree_module, "_MOST_FILES", 2)
    lay(tmp_path, "a", "b", "c")
    with pytest.raises(PlanError, match="too large") as caught:
        tree_of(tmp_path)
    assert ".pacelineignore" in str(caught.value.hint)
