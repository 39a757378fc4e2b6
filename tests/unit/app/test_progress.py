"""How far a run is, and how long a study still takes."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.app.jobs import FileChunk
from paceline.app.progress import RunProgress, progress_of, remaining_s
from paceline.model.plan import Configuration
from paceline.model.spec import load_spec

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


def told(rank: int, index: int, *, seconds: float = 0.5, **more: object) -> str:
    """Return the line of an iteration with all that a rank can say of it."""
    event = {"kind": "iteration", "rank": rank, "t": 1.0, "index": index, "seconds": seconds}
    return json.dumps({**event, "items": 16, "metrics": {"loss": 2.0 - index}, **more}) + "\n"


def test_each_rank_is_told_by_its_recent_iterations() -> None:
    """Throughput, shares and metrics follow the last iterations, and not the slow first ones."""
    progress = RunProgress(expected_iterations=100, unit="img")
    slow = [told(0, index, seconds=9.0) for index in range(5)]
    quick = [told(0, 5 + index, wait_s=0.1, data_s=0.05) for index in range(20)]
    progress.feed(events(*slow, *quick))
    (rank,) = progress.now.ranks
    assert (rank.iteration, rank.of, rank.iteration_s) == (25, 100, 0.5)
    assert rank.items_per_s == 32
    assert rank.wait_share == pytest.approx(0.2)
    assert rank.input_share == pytest.approx(0.1)
    assert rank.metrics == {"loss": -22.0}
    assert (progress.now.items_per_s, progress.now.unit) == (32, "img")


def test_what_a_rank_does_not_say_is_unknown() -> None:
    """Without items or waits there is neither throughput nor a share, rather than zero."""
    progress = RunProgress()
    progress.feed(events(reported(0, 0)))
    (rank,) = progress.now.ranks
    assert (rank.items_per_s, rank.wait_share, progress.now.items_per_s) == (None, None, None)


def test_a_straggler_is_seen_while_it_lags() -> None:
    """All iterations last equally long; the rank that never waits is the one waited for."""
    progress = RunProgress()
    for index in range(10):
        progress.feed(events(told(0, index, wait_s=0.0), told(1, index, wait_s=0.25)))
    assert [rank.lag for rank in progress.now.ranks] == [2.0, None]


def test_a_rank_that_starts_again_forgets_its_pace() -> None:
    """After a restart, its first iterations are the recent ones."""
    progress = RunProgress()
    start = json.dumps({"kind": "start", "rank": 0, "t": 2.0, "host": "node7"}) + "\n"
    progress.feed(events(told(0, 0, seconds=0.1), start, told(0, 0, seconds=3.0)))
    (rank,) = progress.now.ranks
    assert (rank.iteration_s, rank.host, rank.iteration) == (3.0, "node7", 2)


def test_a_run_for_a_time_is_as_far_as_its_time() -> None:
    """A sample of ten seconds is half done after five of training, whatever the epoch says."""
    progress = progress_of(load_spec({"study": {"seconds": 10}}))
    progress.feed(events(*(told(0, index, of=4) for index in range(10))))
    assert progress.fraction == 0.5
    assert progress.text == "epoch 1, iteration 10/4"


def test_the_end_follows_from_the_spec() -> None:
    """Iterations include the warm-up; epochs are those of the job."""
    assert progress_of(load_spec({"study": {"iterations": 20}})).expected_iterations == 23
    assert progress_of(load_spec({"job": {"args": {"epochs": 4}}})).epochs == 4


def test_nobody_knows_the_end_of_any_run() -> None:
    """Of a run without a plan of its length, the place in the epoch is told."""
    progress = RunProgress()
    progress.feed(events(told(0, 6, of=8, epoch=2)))
    assert progress.text == "epoch 3, iteration 7/8"
    assert progress.fraction is None
