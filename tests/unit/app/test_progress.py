"""How far a run is, and how long a study still takes."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from paceline.app.jobs import FileChunk
from paceline.app.progress import RunProgress, remaining_s
from paceline.model.plan import Configuration

ONE = Configuration(1, 1)
TWO = Configuration(1, 2)


def reported(rank: int, index: int, of: int | None = None) -> str:
    """Return the line of an iteration."""
    event = {"kind": "iteration", "rank": rank, "t": 1.0, "index": index, "seconds": 0.1}
    return json.dumps({**event, "of": of}) + "\n"


def events(*lines: str, rank: int = 0) -> FileChunk:
    """Return a chunk of a rank's event file."""
    return FileChunk(f"events/rank-{rank}.jsonl", 0, "".join(lines))


def test_the_slowest_rank_decides() -> None:
    """A run is as far as the rank that is behind."""
    progress = RunProgress(expected_iterations=10)
    progress.feed(events(*(reported(0, index) for index in range(6))))
    progress.feed(events(reported(1, 0), reported(1, 1), rank=1))
    assert progress.fraction == 0.2


def test_epochs_are_counted_by_what_the_ranks_expect() -> None:
    """Without a number of iterations, the ranks' own `of` and the epochs tell the whole."""
    progress = RunProgress(epochs=2)
    progress.feed(events(reported(0, 0, of=5)))
    assert progress.fraction == 0.1
    assert progress.text == "iteration 1/10"


def test_nothing_is_known_before_the_first_iteration() -> None:
    """Before anybody reports, the fraction is unknown rather than zero."""
    progress = RunProgress(expected_iterations=10)
    assert not progress.feed(FileChunk("logs/rank-0.log", 5, "hello\n"))
    assert progress.fraction is None
    assert progress.text == "starting"


@given(st.text())
def test_no_line_can_break_it(text: str) -> None:
    """Whatever stands in an event file, progress goes on."""
    RunProgress().feed(events(text))


def test_time_left_follows_what_was_measured() -> None:
    """Known configurations take as long again, unknown ones the average."""
    assert remaining_s({}, [ONE]) is None
    assert remaining_s({ONE: [10.0, 12.0]}, [ONE, TWO]) == 22.0
    assert remaining_s({ONE: [10.0]}, [ONE], running_s=4.0) == 6.0
    assert remaining_s({ONE: [10.0]}, [ONE], running_s=40.0) == 0.0
