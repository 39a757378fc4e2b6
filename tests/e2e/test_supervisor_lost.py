"""What becomes of a job whose supervisor is killed: nothing of it stays, and that is known."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from tests.fakes.supervised import SupervisedJob, is_alive, python, shell, until

pytestmark = pytest.mark.e2e

DEAF = python(
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready');"
    " time.sleep(1000)"
)
WILLING = shell("echo ready; exec sleep 1000")
# A child in a session of its own, as torchrun's workers are, and one that is as deaf as they get.
WITH_CHILD = shell("setsid sleep 1000 & trap '' TERM; echo ready; while :; do wait; done")


def begin(job: SupervisedJob, *argvs: tuple[str, ...]) -> list[int]:
    """Start a job, wait until its ranks are up, and return their pids."""
    job.write(*argvs, grace_s=0.5)
    job.start()
    for name in job.state().processes:
        job.said(name, "ready")
    return [process.pid or 0 for process in job.state().processes.values()]


@pytest.mark.parametrize("argv", [WILLING, DEAF, WITH_CHILD])
def test_a_killed_supervisor_leaves_nothing(job: SupervisedJob, argv: tuple[str, ...]) -> None:
    """The keeper ends what the supervisor leaves, the stubborn too, and writes that down."""
    begin(job, argv, WILLING)
    job.kill_supervisor()
    state = job.ended()
    assert state.outcome == "lost"
    assert "the supervisor was ended by SIGKILL" in (state.detail or "")
    assert job.alive() == []
    assert job.status() == state


def test_a_killed_keeper_is_not_needed(job: SupervisedJob) -> None:
    """Without its keeper, a supervisor works as before."""
    begin(job, WILLING)
    keeper = job.keeper_pid()
    os.kill(keeper, signal.SIGKILL)
    until(lambda: not is_alive(keeper), "the keeper's end")
    assert job.status().phase == "running"
    assert job.stop().outcome == "stopped"
    assert job.alive() == []


def kill_both(job: SupervisedJob) -> None:
    """Kill the keeper, then the supervisor, and see both gone."""
    os.kill(job.keeper_pid(), signal.SIGKILL)
    job.kill_supervisor()
    until(job.unwatched, "nobody to watch over the job")


@pytest.mark.parametrize("command", ["status", "stop"])
def test_with_both_killed_the_next_question_clears_up(job: SupervisedJob, command: str) -> None:
    """The processes carry the job's mark: whoever asks for the job next ends them."""
    deaf, _ = begin(job, DEAF, WILLING)
    kill_both(job)
    assert job.alive() == [deaf], "the kernel has ended the one that can be asked"
    assert job.state().phase == "running", "nobody was left to write down more"
    words = ("--grace", "0.2") if command == "stop" else ()
    answer = job.call(command, *words)
    assert (answer["phase"], answer["outcome"]) == ("ended", "lost")
    assert job.alive() == []
    assert job.state().outcome == "lost"


def test_a_job_without_its_folder_ends(job: SupervisedJob) -> None:
    """A job whose folder was removed can be neither asked nor stopped: it does not run on."""
    (pid,) = begin(job, DEAF)
    supervisor, keeper = job.state().supervisor_pid or 0, job.keeper_pid()
    shutil.rmtree(job.path)
    until(lambda: not any(is_alive(each) for each in (pid, supervisor, keeper)), "its end")
    assert job.alive() == []


def test_only_the_jobs_own_processes_are_ended(job: SupervisedJob) -> None:
    """A job of the same name in another folder, on the same machine, is left in peace."""
    other = SupervisedJob(job.path.parent / "other")
    other.job_id = job.job_id
    begin(job, DEAF)
    begin(other, WILLING)
    kill_both(job)
    assert job.stop("--grace", "0").outcome == "lost"
    assert job.alive() == []
    assert other.status().phase == "running"
    assert other.stop().outcome == "stopped"


def test_a_stop_does_not_hit_a_stranger(job: SupervisedJob) -> None:
    """A recorded pid that has passed to another process is not signalled."""
    begin(job, WILLING)
    kill_both(job)
    with subprocess.Popen(("sleep", "1000")) as stranger:
        state = job.state()
        text = state.to_json().replace(str(state.supervisor_pid), str(stranger.pid))
        (job.path / "state.json").write_text(text)
        assert job.stop().outcome == "lost"
        assert is_alive(stranger.pid)
        stranger.kill()


def test_a_supervisor_that_dies_while_it_starts_is_lost(job: SupervisedJob) -> None:
    """At whichever moment it is killed, nothing runs on and the job can be asked about."""
    for turn in range(8):
        one = SupervisedJob(job.path.parent / f"turn-{turn}")
        one.write(*[WILLING] * 6, grace_s=0.2)
        starter = subprocess.Popen(one.argv("start"), stdout=subprocess.DEVNULL)
        until(Path(one.path, "state.json").exists, "a first state")
        started = [item for item in one.state().processes.values() if item.pid is not None]
        one.kill_supervisor()
        starter.wait()
        assert one.ended().outcome == "lost", f"killed after {len(started)} starts"
        assert one.alive() == []
        one.clear_up()
