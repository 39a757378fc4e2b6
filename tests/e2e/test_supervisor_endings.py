"""What a job has started out of its supervisor's reach is ended with it, however it ends."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

import pytest

from tests.fakes.supervised import SupervisedJob, is_alive, python, shell, until

pytestmark = pytest.mark.e2e

SLEEPER = shell("echo ready; exec sleep 1000")
DEAF = python(
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready');"
    " time.sleep(1000)"
)


def begin(job: SupervisedJob, argv: tuple[str, ...]) -> None:
    """Start a job whose ending leaves a mark."""
    mark = job.path.with_name("mark")
    job.write(argv, grace_s=0.5, endings=(("touch", str(mark)),))
    job.start()


def kill_supervisor(job: SupervisedJob) -> None:
    """Kill the supervisor, and leave the rest to its keeper."""
    job.kill_supervisor()


def kill_both(job: SupervisedJob) -> None:
    """Kill supervisor and keeper; whoever asks next buries the job."""
    keeper, supervisor = job.keeper_pid(), job.state().supervisor_pid or 0
    os.kill(keeper, signal.SIGKILL)
    until(lambda: not is_alive(keeper), "the keeper's end")
    os.kill(supervisor, signal.SIGKILL)
    until(lambda: not is_alive(supervisor), "the supervisor's end")
    job.status()


def stop(job: SupervisedJob) -> None:
    """Stop it as people do."""
    job.stop()


@pytest.mark.parametrize("argv", [SLEEPER, DEAF])
@pytest.mark.parametrize("end", [stop, kill_supervisor, kill_both])
def test_endings_are_carried_out(
    job: SupervisedJob, argv: tuple[str, ...], end: Callable[[SupervisedJob], None]
) -> None:
    """Whoever ends a job ends what it has started elsewhere before saying that it has ended."""
    begin(job, argv)
    job.said("rank-0", "ready")
    end(job)
    job.ended()
    assert job.path.with_name("mark").exists()


@pytest.mark.parametrize(("line", "outcome"), [("true", "succeeded"), ("exit 3", "failed")])
def test_an_end_by_itself_has_its_endings_too(job: SupervisedJob, line: str, outcome: str) -> None:
    """A client may end well, and have left something behind."""
    begin(job, shell(line))
    assert job.ended().outcome == outcome
    assert job.path.with_name("mark").exists()


def test_an_ending_that_fails_is_noted(job: SupervisedJob) -> None:
    """What could not be ended stands in the supervisor's log, and the outcome stays as it is."""
    job.write(shell("true"), endings=(("no-such-engine", "rm"), ("sh", "-c", "exit 4")))
    job.start()
    assert job.ended().outcome == "succeeded"
    log = (job.path / "supervisor.log").read_text()
    assert "there is no program 'no-such-engine'" in log
    assert "ended with exit code 4" in log
