from __future__ import annotations

from collections.abc import Iterator

import pytest

from paceline.rehearsal.hosts import SshHost
from tests.lab import lab_of


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[SshHost, ...]]:
    """Return two hosts that answer to SSH, for as long as the tests go on."""
    with lab_of(2, tmp_path_factory.mktemp("lab")) as hosts:
        yield hosts
