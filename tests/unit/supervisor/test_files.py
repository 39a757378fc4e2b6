from __future__ import annotations

import os
from pathlib import Path

import pytest

from paceline import events
from paceline.errors import Conflict, NotFound, StorageError, UsageError
from paceline.supervisor import files
from paceline.supervisor.files import JobFolder
from paceline.supervisor.job import Job, JobProcess, JobState

RUNNING = JobState("j", "running")
ENDED = JobState("j", "ended", "succeeded")


@pytest.fixture
def folder(tmp_path: Path) -> JobFolder:
    """Return a job's folder that is ready for its start."""
    made = JobFolder(str(tmp_path))
    made.create()
    return made


def test_the_variable_is_the_one_that_reporters_read() -> None:
    """The supervisor and the reporter agree about where events go."""
    assert files.EVENTS_VARIABLE == events.EVENTS_VARIABLE


def test_a_folder_without_a_job_is_not_found(folder: JobFolder) -> None:
    """What is missing is named, with what to do."""
    with pytest.raises(NotFound, match="there is no job in"):
        folder.read_job()
    with pytest.raises(NotFound, match="no job has been started"):
        folder.known_state()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"job_id": "j"}',
        '{"job_id": "j", "processes": []}',
        '{"job_id": "j", "processes": [{"name": "a", "argv": []}]}',
        '{"job_id": "j", "processes": [{"name": "a/b", "argv": ["x"]}]}',
        '{"job_id": "j", "processes": [{"name": "..", "argv": ["x"]}]}',
        '{"job_id": "j", "processes": [{"name": "", "argv": ["x"]}]}',
        (
            '{"job_id": "j", "processes": [{"name": "a", "argv": ["x"]},'
            ' {"name": "a", "argv": ["x"]}]}'
        ),
    ],
)
def test_a_job_that_makes_no_sense_is_refused(folder: JobFolder, text: str) -> None:
    """Whatever is wrong with a job is said before anything starts."""
    Path(folder.within("job.json")).write_text(text)
    with pytest.raises(UsageError):
        folder.read_job()


def test_a_damaged_state_is_said_to_be_so(folder: JobFolder) -> None:
    """A file that somebody has tampered with is no traceback."""
    Path(folder.within("state.json")).write_text("{")
    with pytest.raises(StorageError, match="damaged"):
        folder.read_state()


def test_the_lock_has_one_holder(folder: JobFolder) -> None:
    """Nobody else gets the lock until its holder lets go."""
    first = folder.try_lock()
    assert first is not None
    assert folder.try_lock() is None
    with pytest.raises(Conflict, match="is running"):
        folder.claim()
    os.close(first)
    os.close(folder.claim())


def test_a_folder_serves_one_job(folder: JobFolder) -> None:
    """A second start would mix the events of two jobs."""
    folder.write_state(ENDED)
    with pytest.raises(Conflict, match="run before"):
        folder.claim()
    lock = folder.try_lock()
    assert lock is not None, "a refused claim keeps no lock"
    os.close(lock)


def test_the_state_is_replaced_as_a_whole(folder: JobFolder) -> None:
    """No draft stays behind, and the reserve is given back with the last state."""
    folder.write_state(RUNNING)
    assert folder.read_state() == RUNNING
    assert Path(folder.within("state.reserve")).stat().st_size == files.RESERVE_BYTES
    folder.write_state(ENDED)
    assert folder.read_state() == ENDED
    assert not [path for path in Path(folder.path).iterdir() if "tmp" in path.name]
    assert not Path(folder.within("state.reserve")).exists()


def test_the_last_state_survives_a_full_disk(
    folder: JobFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where nothing new can be written, the reserve holds the last state, and only that."""
    folder.write_state(RUNNING)

    def no_room(_path: str, _data: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files, "_replace", no_room)
    with pytest.raises(OSError, match="No space left"):
        folder.write_state(RUNNING)
    folder.write_state(ENDED)
    assert folder.read_state() == ENDED


def test_a_stop_request_carries_its_patience(folder: JobFolder) -> None:
    """The supervisor learns how long the one who stops it wants to wait."""
    assert folder.asked_grace_s() is None
    folder.ask_to_stop(2.5)
    assert folder.asked_grace_s() == 2.5


def test_a_job_is_read_as_written(folder: JobFolder) -> None:
    """A good job passes."""
    job = Job("j", (JobProcess("rank-0", ("python3", "train.py")),))
    Path(folder.within("job.json")).write_text(job.to_json())
    assert folder.read_job() == job


def test_a_tail_is_no_longer_than_asked(tmp_path: Path) -> None:
    """The end of a file is read without the rest; a file that is not there is empty."""
    path = tmp_path / "log"
    path.write_text("0123456789")
    assert files.read_tail(str(path), 4) == b"6789"
    assert files.read_tail(str(path), 400) == b"0123456789"
    assert files.read_tail(str(tmp_path / "none"), 4) == b""
