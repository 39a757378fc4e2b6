"""`python -m paceline.datasets`: what a host is told to do, with JSON as its answer."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from paceline.datasets.__main__ import main

Write = Callable[..., Path]


def told(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any], str]:
    """Run the program and return its exit code, its answer, and what it said on the way."""
    code = main(words)
    captured = capsys.readouterr()
    return code, json.loads(captured.out), captured.err


def test_prepare_answers_with_the_facts(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, write_cifar: Write
) -> None:
    """Everything that another program needs to map the images."""
    root = write_cifar(tmp_path / "a")
    code, answer, said = told(capsys, "prepare", "cifar10", "--root", str(root), "--split", "test")
    assert code == 0
    assert (answer["count"], answer["channels"], answer["split"]) == (4, 3, "test")
    assert Path(answer["path"]).stat().st_size == 4 * 3072
    assert said == "preparing images 100%\n"


def test_options_reach_the_generator(capsys: pytest.CaptureFixture[str]) -> None:
    """Size, channels and count; and no progress if none is wanted."""
    words = ("prepare", "fake", "--image-size=28", "--channels=1", "--count=9", "--quiet")
    code, answer, said = told(capsys, *words)
    assert (code, said) == (0, "")
    assert (answer["count"], answer["height"], answer["channels"]) == (9, 28, 1)


def test_verify_answers_and_fails_with_a_code(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, write_cifar: Write
) -> None:
    """0 for a sound set, the code of a data error for another."""
    root = write_cifar(tmp_path / "a")
    code, answer, _ = told(capsys, "verify", "cifar10", "--root", str(root))
    assert (code, answer["ok"], len(answer["digest"])) == (0, True, 64)
    (root / "test_batch.bin").write_bytes(b"")
    code, answer, _ = told(capsys, "verify", "cifar10", "--root", str(root))
    assert (code, answer["ok"]) == (3, False)


def test_locate_says_where_or_fails(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, write_cifar: Write
) -> None:
    """A host can be asked before data is sent to it."""
    root = write_cifar(tmp_path / "a")
    assert told(capsys, "locate", "cifar10", "--root", str(root))[:2] == (
        0,
        {"name": "cifar10", "root": str(root)},
    )
    code, answer, _ = told(capsys, "locate", "mnist", "--root", str(tmp_path / "nowhere"))
    assert (code, answer["message"]) == (3, f"there is no mnist in {tmp_path / 'nowhere'}")


def test_an_error_is_an_answer_as_well(capsys: pytest.CaptureFixture[str]) -> None:
    """Its kind, message and hint, and its exit code."""
    code, answer, _ = told(capsys, "fetch", "imagenet")
    assert code == 2
    assert answer["error"] == "UsageError"
    assert "cannot be fetched" in answer["message"]
    assert answer["hint"]


def test_list_names_all(capsys: pytest.CaptureFixture[str]) -> None:
    """With a description each."""
    code, answer, _ = told(capsys, "list")
    assert code == 0
    assert answer["mnist"].startswith("70,000 handwritten digits")


def test_it_runs_as_a_module_without_installed_packages() -> None:
    """A host needs Python and this package: no site-packages are there."""
    import paceline

    source = str(Path(paceline.__file__).parents[1])
    words = ["prepare", "fake", "--count", "2", "--quiet"]
    done = subprocess.run(
        [sys.executable, "-S", "-m", "paceline.datasets", *words],
        capture_output=True,
        text=True,
        timeout=120,
        env={"PYTHONPATH": source, "HOME": str(Path.home()), "PATH": "/usr/bin:/bin"},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["count"] == 2
