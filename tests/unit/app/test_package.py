"""What travels to the hosts, and a host made ready: sent once, whole, and able to run there."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

import paceline
from paceline.app.package import Package, package_of, settle_on
from paceline.errors import StorageError
from paceline.model.host import Host
from paceline.transports.local import LocalTransport

ROOT = Path(paceline.__file__).parent


class AtHome(LocalTransport):
    """This machine, with a home folder of its own."""


@pytest.fixture
def at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AtHome:
    """Return a host whose home is a fresh folder."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    return AtHome(Host("h", "127.0.0.1", "127.0.0.1"))


def test_the_package_is_sent_once(at_home: AtHome, tmp_path: Path) -> None:
    """The second visit finds what the first has left, and no draft is left beside it."""
    package = package_of(ROOT)
    home = tmp_path / "home" / ".paceline"
    first = asyncio.run(settle_on(at_home, package, str(tmp_path)))
    assert first.import_path == str(home / package.folder)
    assert first.has_workdir
    mark = home / package.folder / "mark"
    mark.touch()
    second = asyncio.run(settle_on(at_home, package, "/no/such/folder"))
    assert (second.import_path, second.has_workdir) == (first.import_path, False)
    assert mark.exists()
    assert [item.name for item in home.iterdir()] == [package.folder]


def test_a_package_that_does_not_fit_leaves_nothing(
    at_home: AtHome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a full disk, each attempt would otherwise leave one more half."""

    async def cut_short(source: Path, target: str, **_: object) -> None:
        Path(target).mkdir(parents=True)
        (Path(target) / next(source.iterdir()).name).touch()
        raise StorageError("No space left on device", host="h")

    monkeypatch.setattr(at_home, "put", cut_short)
    with pytest.raises(StorageError, match="No space left"):
        asyncio.run(settle_on(at_home, package_of(ROOT), None))
    assert list((tmp_path / "home" / ".paceline").iterdir()) == []


def test_two_visitors_at_once_leave_one_package(at_home: AtHome, tmp_path: Path) -> None:
    """Whoever comes second throws its own copy away."""
    package = package_of(ROOT)

    async def both() -> None:
        await asyncio.gather(*(settle_on(at_home, package, None) for _ in range(4)))

    asyncio.run(both())
    home = tmp_path / "home" / ".paceline"
    assert [item.name for item in home.iterdir()] == [package.folder]
    assert [item.name for item in (home / package.folder).iterdir()] == ["paceline"]


def test_what_travels_runs_by_itself(at_home: AtHome) -> None:
    """Supervisor, data sets and peers start from it, isolated from everything installed."""
    home = asyncio.run(settle_on(at_home, package_of(ROOT), None))
    env = {"PYTHONPATH": home.import_path, "PATH": os.environ["PATH"]}
    for words in (("paceline.supervisor", "facts"), ("paceline.peers", "route", "127.0.0.1")):
        done = subprocess.run(
            (sys.executable, "-S", "-m", *words),
            env=env,
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.startswith("{")


def test_the_digest_is_that_of_the_content(tmp_path: Path) -> None:
    """A change of any file makes another package; caches of the interpreter do not count."""
    for name in ("supervisor", "datasets", "trainer"):
        (tmp_path / name).mkdir()
    (tmp_path / "errors.py").write_text("a")

    def made() -> Package:
        return package_of(tmp_path)

    first = made()
    (tmp_path / "supervisor" / "__pycache__").mkdir()
    (tmp_path / "supervisor" / "__pycache__" / "x.pyc").write_text("x")
    assert made() == first
    (tmp_path / "errors.py").write_text("b")
    assert made().digest != first.digest
