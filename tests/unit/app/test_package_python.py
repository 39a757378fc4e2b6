"""What travels to the hosts runs under their Python, which may be as old as 3.8."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import paceline
from paceline.app.package import package_of
from tests.fakes.pythons import old_python

OLDEST = "3.8"
ROOT = Path(paceline.__file__).parent
TRAVELS = {name: path for name, path in package_of(ROOT).files if name.endswith(".py")}
# Looked for before they are called, and done without where they are missing.
OPTIONAL = ("os.pidfd_open", "signal.pidfd_send_signal")
# What can be subscripted only from 3.9 on, where it is evaluated and not just an annotation.
_BUILT_IN = {"dict", "frozenset", "list", "set", "tuple", "type"}
_MODULES = {"collections", "collections.abc", "concurrent.futures", "contextlib", "queue", "re"}


def test_nothing_is_called_that_came_later() -> None:
    """No syntax, function or argument that Python 3.8 lacks."""
    words = ["--no-tips", "--violations", "-q", f"-t={OLDEST}-"]
    words += [word for name in OPTIONAL for word in ("--exclude", name)]
    main = "import vermin; vermin.main()"
    done = subprocess.run(
[sys.executable, "-c", main, *words, *map(str, TRAVELS.values())],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_no_type_is_subscripted_where_it_counts() -> None:
    """`Alias = Callable[[], None]` needs typing's own; in annotations all is well."""
    found = [f"{name}:{line}" for name, path in TRAVELS.items() for line in evaluated(path)]
    assert found == []


@pytest.mark.parametrize(
    ("text", "bad"),
    [
        ("from collections.abc import Callable\nTask = Callable[[], None]", True),
        ("Pair = tuple[int, int]", True),
        ("class Names(dict[str, int]): ...", True),
        ("from typing import Callable\nTask = Callable[[], None]", False),
        ("def one(pair: tuple[int, int]) -> list[int]: ...", False),
        ("found: dict[str, int] = {}", False),
    ],
)
def test_evaluated_types_are_seen(tmp_path: Path, text: str, *, bad: bool) -> None:
    """The look at the sources tells an alias from an annotation."""
    path = tmp_path / "a.py"
    path.write_text(text)
    assert bool(list(evaluated(path))) == bad


def evaluated(path: Path) -> Iterator[int]:
    """Yield the lines where a type is subscripted that Python 3.8 cannot subscript."""
    tree = ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 8))
    generic = set(_BUILT_IN)
    annotations: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module in _MODULES:
            generic |= {alias.asname or alias.name for alias in node.names}
        for key in ("annotation", "returns"):
            if (found := getattr(node, key, None)) is not None:
                annotations.update(ast.walk(found))
    for node in ast.walk(tree):
        if not isinstance(node, ast.Subscript) or node in annotations:
            continue
        if isinstance(node.value, ast.Name) and node.value.id in generic:
            yield node.lineno


def test_every_part_is_imported_by_an_old_python() -> None:
    """A real Python 3.8, where this machine has one, imports all that needs no torch."""
    python = old_python()
    if python is None:
        pytest.skip("there is no Python 3.8 on this machine")
    names = [_module(name) for name in TRAVELS if not name.startswith("trainer/")]
    lines = "import importlib, sys\nfor name in sys.argv[1:]: importlib.import_module(name)"
    done = subprocess.run(
        [python, "-B", "-W", "error", "-c", lines, *names],
        env={"PYTHONPATH": str(ROOT.parent)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def _module(name: str) -> str:
    words = ["paceline", *name.removesuffix(".py").split("/")]
    return ".".join(words[:-1] if words[-1] == "__init__" else words)
