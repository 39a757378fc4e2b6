"""Wheels that lead pip and Python to what is installed on this machine."""

from __future__ import annotations

import subprocess
import sys
import venv
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

from paceline.rehearsal.machines.wheels import canonical, installed_with, write_wheel

NAME, NEEDS, MODULE = "jinja2", "markupsafe", "jinja2"


def test_a_package_comes_with_what_it_needs_and_nothing_twice() -> None:
    """Its needs are found under any spelling; what is not installed here is left out."""
    found = [package.name for package in installed_with(("Jinja2", "jinja2", "nowhere-to-be-had"))]
    assert sorted(name.lower() for name in found) == [NAME, NEEDS]


def test_what_jupyterlab_needs_is_whole() -> None:
    """Extras that somebody requires count, or pip would look for them and find nothing."""
    there = {canonical(package.name) for package in installed_with(("jupyterlab", "fabric"))}
    waiting, seen = ["jupyterlab", "fabric"], set()
    while waiting:
        wanted = Requirement(waiting.pop())
        if str(wanted) in seen:
            continue
        seen.add(str(wanted))
        assert canonical(wanted.name) in there
        for line in metadata.distribution(wanted.name).requires or ():
            needed = Requirement(line)
            holds = needed.marker is None or any(
                needed.marker.evaluate({"extra": extra}) for extra in wanted.extras or {""}
            )
            if holds:
                needed.marker = None
                waiting.append(str(needed))


def test_pip_installs_what_is_here_without_a_registry(tmp_path: Path) -> None:
    """In another environment: the real version, what it needs, and modules that can be imported."""
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    for package in installed_with((NAME,)):
        apart = tmp_path / "packages" / package.name
        apart.mkdir(parents=True)
        for part in package.parts():
            (apart / part.name).symlink_to(part)
        write_wheel(package, wheels, str(apart))
    venv.create(tmp_path / "env", with_pip=False)
    python = tmp_path / "env/bin/python"
    subprocess.run(
        (sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-index",
         "--find-links", wheels, NAME),
        check=True,
    )  # fmt: skip
    script = f"import {MODULE}, {NEEDS}; from importlib import metadata as m; print("
    script += f"m.version({NAME!r}), {MODULE}.__file__)"
    done = subprocess.run((python, "-c", script), capture_output=True, text=True, check=True)
    version, path = done.stdout.split()
    assert version == metadata.version(NAME)
    assert path.startswith(str(tmp_path / "packages"))
