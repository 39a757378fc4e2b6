from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest
from hypothesis import settings

from paceline.rehearsal.engine import Engine
from paceline.rehearsal.hosts import SshHost
from tests.lab import engines_of, lab_of

# How long an example takes says more about the machine's other work than about us.
settings.register_profile("paceline", deadline=None)
settings.load_profile("paceline")


def pytest_configure() -> None:
    """Give programs that tests start their Ctrl-C back: who runs us may have had it ignored."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what tests have counted and want told, such as at how many points they were killed."""
    for report in terminalreporter.stats.get("passed", []):
        for name, value in report.user_properties:
            if name == "told":
                terminalreporter.write_line(f"{report.nodeid}: {value}")


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[SshHost, ...]]:
    """Return two hosts that answer to SSH, for as long as the tests go on."""
    with lab_of(2, tmp_path_factory.mktemp("lab")) as hosts:
        yield hosts


@pytest.fixture(scope="session")
def docker_lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[SshHost, ...]]:
    """Return two more hosts, for those tests that have a docker engine at work on them."""
    with lab_of(2, tmp_path_factory.mktemp("docker-lab")) as hosts:
        yield hosts


@pytest.fixture(scope="session")
def engines(docker_lab: tuple[SshHost, ...]) -> Iterator[tuple[Engine, ...]]:
    """Return the docker engines of those hosts."""
    with engines_of(docker_lab) as made:
        yield made
