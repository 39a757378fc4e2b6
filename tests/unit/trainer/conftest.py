"""Small data, one thread, and nothing of the user's own: where every test of the trainer runs."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

if find_spec("torch") is None:
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture(autouse=True, scope="session")
def _one_thread() -> Iterator[None]:
    """Compute with one thread: these networks are too small for more."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder in which all these tests prepare their images."""
    return tmp_path_factory.mktemp("prepared")


@pytest.fixture(autouse=True)
def _own_places(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write to no cache of the user's."""
    monkeypatch.setenv("PACELINE_CACHE", str(cache))
    monkeypatch.setenv("HOME", str(tmp_path))
