"""A virtual environment of a host: made once, whole or not at all, by one at a time."""

from __future__ import annotations

import ensurepip
import json
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from paceline.outfit import venvs
from tests.fakes.wheels import tiny_wheel


def wish(requirements: str = "tiny-thing\n", **more: Any) -> dict[str, Any]:
    """Return the wish for an environment."""
    return {"requirements": requirements, "constraints": "", "index": [], "wheels": "w", **more}


@pytest.fixture
def wheels(tmp_path: Path) -> str:
    """Return a folder that holds one wheel, and pip's own, which saves a host's ensurepip."""
    folder = tmp_path / "wheels"
    tiny_wheel(folder, "tiny_thing", "1.0", "WORD = 'tiny'\n")
    (pip,) = Path(ensurepip.__file__).parent.glob("_bundled/pip-*.whl")
    shutil.copy(pip, folder)
    return str(folder)


def test_an_environment_is_made_once(tmp_path: Path, wheels: str) -> None:
    """The second time it is found; what was required can be imported; another wish is another."""
    root = str(tmp_path / "venvs")
    assert venvs.find(root, wish())["there"] is False
    first = venvs.make(root, wish(), wheels)
    assert first["made"] is True
    assert venvs.make(root, wish(), wheels) == {"python": first["python"], "made": False}
    assert venvs.find(root, wish()) == {"python": first["python"], "there": True}
    done = subprocess.run(
        [first["python"], "-c", "import tiny_thing; print(tiny_thing.WORD)"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == "tiny\n"
    assert venvs.key_of(wish(wheels="other")) != venvs.key_of(wish())


def test_what_cannot_be_had_leaves_nothing(tmp_path: Path, wheels: str) -> None:
    """An environment that fails is no environment; pip's own words say why."""
    root = tmp_path / "venvs"
    answer = venvs.make(str(root), wish("no-such-thing\n"), wheels)
    assert "No matching distribution found for no-such-thing" in answer["error"]
    assert "carry" in answer["hint"]
    assert [path for path in root.iterdir() if path.is_dir()] == []


def test_half_of_one_is_made_anew(tmp_path: Path, wheels: str) -> None:
    """Whoever was killed in the middle leaves no trap for the next."""
    root = tmp_path / "venvs"
    half = root / venvs.key_of(wish()) / "bin"
    half.mkdir(parents=True)
    (half / "python").symlink_to(sys.executable)
    assert venvs.make(str(root), wish(), wheels)["made"] is True


def test_two_at_once_make_one(tmp_path: Path, wheels: str) -> None:
    """A second job waits for the first and finds the environment made."""
    words = (sys.executable, "-m", "paceline.outfit", "venv")
    text = json.dumps({"root": str(tmp_path / "venvs"), "wish": wish(), "wheels": wheels})
    made: list[bool] = []

    def visit() -> None:
        done = subprocess.run(words, input=text, capture_output=True, text=True, check=True)
        made.append(json.loads(done.stdout)["made"])

    threads = [threading.Thread(target=visit) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(made) == [False, True]


def test_this_python_is_described() -> None:
    """Version, processor and C library decide which wheels fit."""
    found = venvs.describe_python()
    assert found["version"].startswith(f"{sys.version_info[0]}.{sys.version_info[1]}.")
    assert found["libc"] == "glibc"
