"""A spot machine is taken back: its supervisor hears of it, and a study repeats the sample."""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import paceline
from paceline.events import Checkpoint, parse_events
from paceline.model.host import Cluster
from paceline.planning import run as planning_run
from paceline.providers.local import LocalProvider
from paceline.supervisor.job import JobProcess, Lookout
from tests.fakes.metadata import Metadata, metadata_service
from tests.fakes.supervised import SupervisedJob, python, shell, until

pytestmark = pytest.mark.e2e

LISTENING = (
    "import signal, time\n"
    "signal.signal(signal.SIGUSR1, lambda *_: print('checkpoint', flush=True))\n"
    "signal.signal(signal.SIGTERM, lambda *_: (print('end', flush=True), exit(0)))\n"
    "print('up', flush=True)\n"
    "while True: time.sleep(0.05)\n"
)


@pytest.fixture
def metadata() -> Iterator[Metadata]:
    """Return a metadata service."""
    with metadata_service() as service:
        yield service


def lookout(metadata: Metadata, *, wind_down_s: float = 1.0) -> Lookout:
    """Return a lookout that is in a hurry."""
    return Lookout(metadata.address, every_s=0.1, wind_down_s=wind_down_s)


def test_a_notice_asks_for_a_checkpoint_and_ends_the_job(
    job: SupervisedJob, metadata: Metadata
) -> None:
    """Only ranks that listen are asked; the state and an event say when the machine goes."""
    rank = JobProcess("rank-4", python(LISTENING), env={"RANK": "4"}, ranks=(4,))
    # SIGUSR1 would end this one: it must live until the end, that is, until it is asked to end.
    deaf = JobProcess("rank-5", shell("echo up; exec sleep 1000"), env={"RANK": "5"}, ranks=(5,))
    # Neither is a launcher asked, though it may listen: what it does with it is its own affair.
    launcher = JobProcess("launcher", python(LISTENING))
    job.write_processes(rank, deaf, launcher, lookout=lookout(metadata))
    job.start()
    job.said("rank-4", "up")
    job.said("rank-5", "up")
    job.said("launcher", "up")
    metadata.take_back(120.0)
    state = job.ended()
    assert state.outcome == "interrupted"
    assert state.notice is not None
    assert state.notice.action == "terminate"
    assert 100.0 < state.notice.at - state.notice.seen_at < 121.0
    assert job.log("rank-4").split() == ["up", "checkpoint", "end"]
    assert job.log("launcher").split() == ["up", "end"]
    assert state.processes["rank-5"].exit_code == -15
    event = json.loads((job.path / "events" / "host-of-rank-4.jsonl").read_text())
    assert (event["kind"], event["rank"], event["action"]) == ("interruption", 4, "terminate")


@pytest.mark.torch
def test_our_trainer_leaves_a_checkpoint(job: SupervisedJob, metadata: Metadata) -> None:
    """A training that keeps none by itself has one when its machine goes."""
    pytest.importorskip("torch")
    words = (
        *("--program", "mlp", "--dataset", "fake", "--count", "64", "--batch_size", "4"),
        *("--seconds", "600", "--num_epochs", "100000", "--out_folder", f"{job.path}/out"),
    )
    rank = JobProcess(
        "rank-0", (sys.executable, "-m", "paceline.trainer", *words), env={"RANK": "0"}, ranks=(0,)
    )
    job.write_processes(rank, lookout=lookout(metadata, wind_down_s=5.0))
    job.start()
    events = job.path / "events" / "rank-0.jsonl"
    until(lambda: events.exists() and '"iteration"' in events.read_text(), "the first iteration")
    metadata.take_back()
    assert job.ended().outcome == "interrupted"
    told = list(parse_events(events.read_text().splitlines()))
    (saved,) = [event for event in told if isinstance(event, Checkpoint)]
    assert Path(saved.path).is_file()


def test_a_job_that_ends_in_time_has_succeeded(job: SupervisedJob, metadata: Metadata) -> None:
    """After the notice there is time to come to one's own end; an old token is no obstacle."""
    code = (
        "import signal, sys, time\n"
        "signal.signal(signal.SIGUSR1, lambda *_: sys.exit(0))\n"
        "print('up', flush=True)\n"
        "time.sleep(1000)\n"
    )
    job.write_processes(
        JobProcess("rank-0", python(code), env={"RANK": "0"}, ranks=(0,)),
        lookout=lookout(metadata, wind_down_s=60.0),
    )
    job.start()
    job.said("rank-0", "up")
    metadata.tokens.clear()
    metadata.take_back()
    state = job.ended()
    assert state.outcome == "succeeded"
    assert state.notice is not None
    assert metadata.asked[0] == "PUT /latest/api/token"


def test_without_a_notice_nothing_happens(job: SupervisedJob, metadata: Metadata) -> None:
    """Neither a service without one nor the lack of any service disturbs a job."""
    job.write(shell("sleep 0.5"), lookout=lookout(metadata))
    job.start()
    state = job.ended()
    assert (state.outcome, state.notice) == ("succeeded", None)
    assert any("instance-action" in path for path in metadata.asked)
    alone = SupervisedJob(job.path.with_name("alone"))
    alone.write(shell("sleep 0.5"), lookout=Lookout("http://127.0.0.1:1", every_s=0.1))
    alone.start()
    assert alone.ended().outcome == "succeeded"
    alone.clear_up()


def test_a_study_repeats_a_sample_whose_machine_was_taken(
    metadata: Metadata, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The interrupted run is a record of its own, no retry is used up, and the study is whole."""
    whole = LocalProvider.cluster

    async def on_spot(self: LocalProvider) -> Cluster:
        return replace(await whole(self), notices_at=metadata.address)

    monkeypatch.setattr(LocalProvider, "cluster", on_spot)
    quick = functools.partial(Lookout, every_s=0.1, wind_down_s=0.2)
    monkeypatch.setattr(planning_run, "Lookout", quick)
    monkeypatch.setenv("PACELINE_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    metadata.take_back(times=1)
    # The first one is interrupted before it can be done; those after it are quick.
    command = ["sh", "-c", f"[ -e {tmp_path}/once ] || {{ touch {tmp_path}/once; exec sleep 60; }}"]
    spec = {
        "name": "spotted",
        "job": {"command": command},
        "study": {"grid": {"procs_per_node": [1]}, "samples": 2},
        "limits": {"retries": 0},
    }
    paceline.study(spec)
    states = sorted(run.state.value for run in paceline.runs())
    assert states == ["interrupted", "succeeded", "succeeded"]
