from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.supervisor.files import JobFolder
from paceline.supervisor.follow import CHUNK_BYTES, Follower, chunk_length, follow
from paceline.supervisor.job import JobState

texts = st.text(alphabet=st.sampled_from("ab\n\ré€𝄞"), max_size=60)


@given(texts.map(str.encode) | st.binary(max_size=60), st.integers(4, 20))
def test_chunks_are_whole_lines_or_full(data: bytes, limit: int) -> None:
    """While a job runs, only whole lines go out, or pieces of a line that is too long."""
    length = chunk_length(data[:limit], last=False, limit=limit)
    if length > 0:
        whole = data[length - 1 : length] in {b"\n", b"\r"}
        assert whole or length > limit - 4
    if len(data) >= limit:
        assert length > 0


@given(texts, st.integers(4, 20))
def test_no_character_is_cut(text: str, limit: int) -> None:
    """Put together, the pieces are the text, without a single replacement character."""
    data, pieces = text.encode(), []
    while data:
        length = chunk_length(data[:limit], last=True, limit=limit)
        assert length > 0
        pieces.append(data[:length].decode("utf-8", "strict"))
        data = data[length:]
    assert "".join(pieces) == text


def test_a_carriage_return_waits_for_its_line_feed() -> None:
    """A line end of two characters is never taken apart."""
    assert chunk_length(b"one\ntwo\r", last=False) == 4
    assert chunk_length(b"one\ntwo\r\n", last=False) == 9


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["a", "b"]), st.binary(max_size=40)), max_size=12))
def test_a_reader_that_comes_back_gets_each_byte_once(writes: list[tuple[str, bytes]]) -> None:
    """However writes and readers interleave, offsets leave no gap and no overlap."""
    with tempfile.TemporaryDirectory() as name:
        logs = Path(name, "logs")
        logs.mkdir()
        folder = JobFolder(name)
        offsets: dict[str, int] = {}
        for log, data in writes:
            with Path(logs, log).open("ab") as file:
                file.write(data)
            # Each time a new reader, which knows only the offsets that the last one reached.
            _read(Follower(folder, offsets), offsets, logs, last=False)
        _read(Follower(folder, offsets), offsets, logs, last=True)
        sizes = {f"logs/{path.name}": path.stat().st_size for path in logs.iterdir()}
        assert offsets == {log: size for log, size in sizes.items() if size}


def _read(follower: Follower, offsets: dict[str, int], logs: Path, *, last: bool) -> None:
    for piece in follower.pieces(last=last):
        log, start, end = str(piece["file"]), piece["start"], piece["end"]
        assert isinstance(start, int)
        assert isinstance(end, int)
        assert start == offsets.get(log, 0)
        data = (logs.parent / log).read_bytes()[start:end]
        assert piece["text"] == data.decode("utf-8", "replace")
        offsets[log] = end


def test_a_long_file_comes_in_bounded_pieces(tmp_path: Path) -> None:
    """Neither a big log nor a line without end makes a big piece."""
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "a.log").write_bytes(b"x" * 200_000 + b"\n" + b"y\n" * 100_000)
    pieces = list(Follower(JobFolder(str(tmp_path)), {}).pieces(last=True))
    assert "".join(str(piece["text"]) for piece in pieces) == "x" * 200_000 + "\n" + "y\n" * 100_000
    assert max(len(str(piece["text"])) for piece in pieces) <= CHUNK_BYTES


def test_an_ended_job_is_told_from_the_offsets_on(tmp_path: Path) -> None:
    """A late reader gets what it lacks, then the last state, and is done."""
    folder = JobFolder(str(tmp_path))
    folder.create()
    (tmp_path / "logs" / "a.log").write_text("one\ntwo\nthree")
    (tmp_path / "events" / "rank-0.jsonl").write_text('{"kind":"end"}\n')
    folder.write_state(JobState("j", "ended", "succeeded"))
    reader, writer = os.pipe()
    follow(folder, {"logs/a.log": 4}, writer)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        lines = [json.loads(line) for line in pipe]
    assert [line.get("text") for line in lines] == ['{"kind":"end"}\n', "two\nthree", None]
    assert lines[-1]["state"]["outcome"] == "succeeded"


def test_a_reader_that_went_away_ends_the_following(tmp_path: Path) -> None:
    """Nobody is read to: a closed pipe is a reason to stop, even where nothing is said."""
    folder = JobFolder(str(tmp_path))
    folder.create()
    folder.write_state(JobState("j", "running"))
    lock = folder.try_lock()
    assert lock is not None
    reader, writer = os.pipe()
    os.close(reader)
    follow(folder, {}, writer)
    os.close(writer)
    os.close(lock)
