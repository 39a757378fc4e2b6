from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from paceline.supervisor.job import (
    Companions,
    FirstFailure,
    Job,
    JobProcess,
    JobState,
    ProcessState,
)

words = st.text(max_size=20)
processes = st.builds(
    JobProcess,
    name=words,
    argv=st.lists(words, min_size=1, max_size=4).map(tuple),
    env=st.dictionaries(words, words, max_size=3),
    cwd=st.none() | words,
    ranks=st.lists(st.integers(0, 99), max_size=3).map(tuple),
)
jobs = st.builds(
    Job,
    job_id=words,
    processes=st.lists(processes, max_size=4).map(tuple),
    timeout_s=st.none() | st.floats(0, 1e6),
    grace_s=st.floats(0, 1e3),
    companions=st.none()
    | st.builds(Companions, hosts=st.lists(words, min_size=2, max_size=4).map(tuple)),
)
states = st.builds(
    JobState,
    job_id=words,
    phase=st.sampled_from(["starting", "running", "ended"]),
    outcome=st.none() | words,
    supervisor_pid=st.none() | st.integers(1, 99999),
    started_at=st.none() | st.floats(0, 1e10),
    processes=st.dictionaries(
        words, st.builds(ProcessState, pid=st.none() | st.integers(1, 99)), max_size=3
    ),
    first_failure=st.none() | st.builds(FirstFailure, words, st.none() | st.integers(), words),
    detail=st.none() | words,
)


@given(jobs)
def test_a_job_survives_its_file(job: Job) -> None:
    """What is written to job.json is read back unchanged."""
    assert Job.from_json(job.to_json()) == job


@given(states)
def test_a_state_survives_its_file(state: JobState) -> None:
    """What is written to state.json is read back unchanged."""
    assert JobState.from_json(state.to_json()) == state


def test_a_job_needs_only_its_essentials() -> None:
    """A job written by hand may leave out all that has a default."""
    text = json.dumps({"job_id": "j", "processes": [{"name": "a", "argv": ["true"]}]})
    assert Job.from_json(text) == Job("j", (JobProcess("a", ("true",)),))


def test_a_state_of_a_newer_version_can_be_read() -> None:
    """Fields that this version does not know are passed over, at every depth."""
    state = JobState("j", "running", processes={"a": ProcessState(pid=1)})
    data = json.loads(state.to_json())
    data["mood"] = "good"
    data["processes"]["a"]["mood"] = "good"
    data["first_failure"] = {"process": "a", "exit_code": 1, "excerpt": "x", "mood": "bad"}
    read = JobState.from_dict(data)
    assert read.processes == state.processes
    assert read.first_failure == FirstFailure("a", 1, "x")
