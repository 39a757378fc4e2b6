"""From the folder of a run to a sample and to what it trained on."""

from __future__ import annotations

from pathlib import Path

import pytest

from paceline.app.results import event_lines, read_sample, trained_on
from tests.fakes.studies import make_study, rank_lines


def test_a_runs_files_become_a_sample(tmp_path: Path) -> None:
    """Each rank's file is read under its rank, and the figures follow."""
    made = make_study(tmp_path, procs=(2,))
    events = {rank: rank_lines(rank, 2) for rank in (0, 1)}
    sample = read_sample(made.add(made.plan.samples[0], events), made.spec)
    assert (sample.failed, sample.items_per_s) == (None, 64.0)
    assert [rank.rank for rank in sample.ranks] == [0, 1]


def test_files_that_no_rank_wrote_are_passed_over(tmp_path: Path) -> None:
    """Only numbers are ranks, and only those that Python reads as numbers."""
    made = make_study(tmp_path)
    record = made.add(made.plan.samples[0], {0: rank_lines(0)})
    for name in ("rank-x.jsonl", "rank-².jsonl", "rank-.jsonl", "notes.txt"):
        (record.folder / "events" / name).write_text("?")
    assert list(event_lines(record)) == [0]


def test_a_lines_end_is_a_line_feed_and_nothing_else(tmp_path: Path) -> None:
    """Separators that Unicode knows may stand inside a text that another program wrote."""
    made = make_study(tmp_path)
    note = '{"kind":"note","rank":0,"t":1,"text":"a\u2028b\x85c"}'
    lines = [*rank_lines(0), note]
    sample = read_sample(made.add(made.plan.samples[0], {0: lines}), made.spec)
    assert sample.failed is None
    assert sample.notes == ("the job says: a\u2028b\x85c",)


@pytest.mark.parametrize(
    "head", ["garbage", '{"kind":"start","rank":0,"t":0,"info":[]}', "\x00\xff", "", "[" * 9000]
)
def test_a_start_that_is_unreadable_says_nothing(tmp_path: Path, head: str) -> None:
    """What was trained on is unknown, and nothing breaks; another rank may know it."""
    made = make_study(tmp_path, procs=(2,))
    lines = [head, *rank_lines(0, 2, source="cifar10")]
    assert trained_on(made.add(made.plan.samples[0], {0: lines})) is None
    both = {0: lines, 1: rank_lines(1, 2, source="mnist")}
    assert trained_on(made.add(made.plan.samples[0], both)) == "mnist"


def test_what_a_run_trained_on_is_its_own_word(tmp_path: Path) -> None:
    """The source that a rank names at its start is returned; silence is None."""
    made = make_study(tmp_path)
    planned = made.plan.samples[0]
    assert trained_on(made.add(planned, {0: rank_lines(0, source="cifar10")})) == "cifar10"
    assert trained_on(made.add(planned, {0: rank_lines(0)})) is None
    assert trained_on(made.add(planned, {})) is None
