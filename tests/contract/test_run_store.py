"""The contract of a run store; every store, real or fake, has to pass it."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from paceline.errors import Conflict, NotFound
from paceline.model.command import Command, Secret
from paceline.model.host import Host
from paceline.model.plan import (
    Configuration,
    HostPlan,
    PlannedSample,
    ProcessPlan,
    RunPlan,
    StudyPlan,
    Vigil,
)
from paceline.model.record import Failure, RunRecord, RunState, StudyRecord
from paceline.ports import RunStore
from paceline.store.index import Index
from paceline.store.runs import FileRunStore

ONE = Configuration(nodes=1, procs_per_node=1, batch_size=16)
TWO = Configuration(nodes=1, procs_per_node=2, batch_size=16, args=(("precision", "bf16"),))


class TickingClock:
    """A clock that goes on by a second whenever it is read."""

    def __init__(self) -> None:
        self.seconds = 1_000.0

    def now(self) -> float:
        """Return the time and let a second pass."""
        self.seconds += 1.0
        return self.seconds

    def monotonic(self) -> float:
        """Return the same."""
        return self.now()

    async def sleep(self, seconds: float) -> None:
        """Let the time pass without waiting."""
        self.seconds += seconds


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    """Return the store under test."""
    index = Index(tmp_path / "state" / "index.sqlite")
    return FileRunStore(tmp_path / "results", index, TickingClock())


def run_plan(run_id: str) -> RunPlan:
    """Return a plan of two ranks with a secret in their environment."""
    host = Host(name="here", address="127.0.0.1", peer_address="127.0.0.1")
    env: dict[str, str | Secret] = {"RANK": "0", "API_TOKEN": Secret("hush")}
    process = ProcessPlan("rank-0", Command(("python", "x.py"), env, cwd="/srv"), (0,))
    return RunPlan(
        run_id=run_id,
        configuration=TWO,
        launcher="direct",
        hosts=(HostPlan(host, 0, (process,)),),
        master_address="127.0.0.1",
        master_port=29500,
        job_folder=f"/jobs/{run_id}",
        python="/usr/bin/python3",
        notes=("a note",),
        vigil=Vigil(30000, Secret("hush")),
    )


def planned_run(store: RunStore, run_id: str, study: StudyRecord | None = None) -> RunRecord:
    """Write down a run before it starts, and return its record."""
    record = RunRecord(
        run_id=run_id,
        kind="sample" if study else "train",
        state=RunState.PLANNED,
        configuration=TWO,
        folder=store.folder_for_run(run_id, study),
        created_at=5.0,
        study=study.name if study else None,
        sample_id="s1" if study else None,
    )
    store.create_run(record, run_plan(run_id))
    return record


def study_plan(digest: str = "d1") -> StudyPlan:
    """Return a plan of two samples."""
    samples = (PlannedSample("one-s1", ONE, 1), PlannedSample("two-s1", TWO, 1))
    return StudyPlan("scaling", ONE, (ONE, TWO), samples, digest, ("a note",))


def test_a_run_is_there_from_the_moment_it_is_created(store: RunStore) -> None:
    """A run can be read back, whole, before it has started."""
    record = planned_run(store, "dcgan-1a2b3c")
    assert store.run("dcgan-1a2b3c") == record


def test_an_update_replaces_what_was_known(store: RunStore) -> None:
    """The outcome of a run, with its failure, survives a round trip."""
    record = planned_run(store, "dcgan-1a2b3c")
    failure = Failure("rank-1 failed", "rank-1", "here", 1, "Traceback", "look there")
    ended = replace(record, state=RunState.FAILED, wall_s=2.5, ended_at=9.0, failure=failure)
    store.update_run(ended)
    assert store.run("dcgan-1a2b3c") == ended
    assert store.reread(record) == ended


def test_a_plan_is_kept_without_its_secrets(store: RunStore) -> None:
    """What is kept of a plan shows the whole command but never a secret."""
    record = planned_run(store, "dcgan-1a2b3c")
    plan = store.plan_of(record)
    command = plan.hosts[0].processes[0].command
    assert command.argv == ("python", "x.py")
    assert command.env == {"RANK": "0", "API_TOKEN": "[secret]"}
    assert plan.job_folder == "/jobs/dcgan-1a2b3c"
    assert plan.vigil == Vigil(30000, Secret("[secret]"))
    written = "".join(path.read_text() for path in record.folder.iterdir() if path.is_file())
    assert "hush" not in written


def test_a_beginning_that_fits_one_run_names_it(store: RunStore) -> None:
    """An unambiguous beginning of an id is enough."""
    planned_run(store, "dcgan-aaaaaa")
    planned_run(store, "dcgan-bbbbbb")
    assert store.run("dcgan-b").run_id == "dcgan-bbbbbb"


@pytest.mark.parametrize("name", ["nothing", "dcgan", "dcgan_a", "%"])
def test_a_name_that_fits_none_or_several_is_not_found(store: RunStore, name: str) -> None:
    """An unknown or ambiguous name is an error, and wildcards are letters like others."""
    planned_run(store, "dcgan-aaaaaa")
    planned_run(store, "dcgan-bbbbbb")
    with pytest.raises(NotFound):
        store.run(name)


def test_runs_are_listed_by_study_and_state(store: RunStore) -> None:
    """Runs of a study, and runs in a state, can be asked for."""
    study = store.open_study(study_plan(), {}, {})
    sample = planned_run(store, "sample-1", study)
    alone = planned_run(store, "train-1")
    store.update_run(replace(alone, state=RunState.RUNNING))
    assert [record.run_id for record in store.runs(study=study.name)] == [sample.run_id]
    assert [record.run_id for record in store.runs(states=(RunState.RUNNING,))] == ["train-1"]
    assert {record.run_id for record in store.runs()} == {"sample-1", "train-1"}


def test_a_study_of_the_same_digest_is_the_same_study(store: RunStore) -> None:
    """Opening a study again keeps when it was begun and takes the newer spec and plan."""
    first = store.open_study(study_plan(), {"samples": 3}, {"cores": 2})
    longer = replace(study_plan(), samples=study_plan().samples[:1])
    again = store.open_study(longer, {"samples": 5}, {"cores": 2})
    assert again.created_at == first.created_at
    assert store.study("scaling").spec == {"samples": 5}
    assert store.study_plan(again) == longer


def test_rehearsed_and_real_results_make_way_for_each_other(store: RunStore) -> None:
    """Only the other kind makes way, under a name that tells; real results come back."""
    assert store.make_way("scaling", rehearsed=True) == ()
    real = store.open_study(study_plan(), {"real": True}, {})
    assert store.make_way("scaling", rehearsed=False) == ()
    ((old, aside),) = store.make_way("scaling", rehearsed=True)
    assert old == real.folder
    assert aside.name.startswith("scaling.real-")
    rehearsed = store.open_study(study_plan("d2"), {}, {"rehearsed": True})
    assert store.make_way("scaling", rehearsed=True) == ()
    away, back = store.make_way("scaling", rehearsed=False)
    assert away[1].name.startswith("scaling.rehearsed-")
    assert back == (aside, real.folder)
    assert store.study("scaling").spec == {"real": True}
    assert store.study(str(away[1])).digest == rehearsed.digest


def test_results_that_are_worked_on_make_no_way(store: RunStore) -> None:
    """A study that goes on is not moved from under whoever carries it out."""
    real = store.open_study(study_plan(), {}, {})
    with store.lock("scaling"), pytest.raises(Conflict, match="worked on"):
        store.make_way("scaling", rehearsed=True)
    assert store.study("scaling") == real


def test_a_study_of_another_digest_is_a_conflict(store: RunStore) -> None:
    """Results of another job are never mixed into a study of the same name."""
    store.open_study(study_plan(), {}, {})
    with pytest.raises(Conflict, match="another one"):
        store.open_study(study_plan("d2"), {}, {})


def test_only_one_at_a_time_works_on_a_study(store: RunStore) -> None:
    """The lock of a study refuses the second, and is free again after the first."""
    study = store.open_study(study_plan(), {}, {})
    with (
        store.lock(study.name),
        pytest.raises(Conflict, match="worked on by process"),
        store.lock(study.name),
    ):
        pass
    with store.lock(study.name):
        pass


def test_who_holds_a_study_can_be_asked(store: RunStore) -> None:
    """Its process is told while it works, also after a lock that was never let go of in order."""
    study = store.open_study(study_plan(), {}, {})
    assert store.holder(study.name) is None
    with store.lock(study.name):
        assert store.holder(study.name) == os.getpid()
    assert store.holder(study.name) is None
    gone = subprocess.Popen(["true"])
    gone.wait()
    with store.lock(study.name):
        lock = study.folder / ".lock"
    lock.write_text(str(gone.pid))
    assert store.holder(study.name) is None


def test_results_are_written_beside_the_study(store: RunStore) -> None:
    """A result file lies in the study's folder and is replaced as a whole."""
    study = store.open_study(study_plan(), {}, {})
    store.write_result(study, "samples.csv", b"old and longer")
    path = store.write_result(study, "samples.csv", b"new")
    assert path.parent == study.folder
    assert path.read_bytes() == b"new"
    assert store.studies() == (study,)
