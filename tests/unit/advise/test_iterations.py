"""Files of iterations: what is read from them, and what is said of those that are odd."""

from __future__ import annotations

import gzip
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.advise.iterations import parse_iterations
from paceline.advise.nouns import Launch, Target
from paceline.errors import DataError
from tests.unit.advise.conftest import DATA, HEADER, lines

ROW = "A,m5.large,2,1,32,{rank},{epoch},{iteration},782,{seconds}"


def row(iteration: int, seconds: object, rank: int = 0, epoch: int = 0) -> str:
    """Return a line of one launch on two m5.large."""
    return ROW.format(rank=rank, epoch=epoch, iteration=iteration, seconds=seconds)


def test_the_published_runs_are_read(published: tuple[Launch, ...]) -> None:
    """Thirteen launches; B has two epochs, C stops after 21 iterations."""
    assert len(published) == 13
    by_study = {item.study: item for item in published}
    assert len(by_study["B"].epochs) == 2
    assert len(by_study["C"].epochs[0].seconds) == 21
    assert not by_study["C"].whole_epochs
    assert len(by_study["D"].whole_epochs[0].seconds) == 1563


def test_an_iteration_is_the_mean_of_its_ranks() -> None:
    """Ranks wait for each other: what they say differently is noise."""
    (found,) = parse_iterations(lines(row(0, 1.0), row(0, 3.0, rank=1)), source="x.csv")
    assert found.epochs[0].seconds == {0: 2.0}
    assert found.target == Target("m5.large", 2, 1, 32)


@given(st.integers(0, 2**32))
def test_the_order_of_rows_and_the_packing_mean_nothing(seed: int) -> None:
    """Shuffled rows, doubled rows and gzip make the same launches, to the last digit."""
    rows = [
        row(index, 1 + 0.1 * rank + index / 7, rank, epoch)
        for index in range(5)
        for rank in range(2)
        for epoch in range(2)
    ]
    plain = parse_iterations(lines(*rows), source="x.csv")
    shuffled = [*rows, *rows[:3]]
    random.Random(seed).shuffle(shuffled)  # noqa: S311 - no secret
    assert parse_iterations(lines(*shuffled), source="x.csv") == plain
    assert parse_iterations(gzip.compress(lines(*shuffled)), source="x.csv") == plain


def test_columns_may_stand_anywhere_and_some_may_be_absent() -> None:
    """Study, rank, epoch and iterations_per_epoch are not needed, further columns are ignored."""
    content = (
        b"note,seconds,iteration,batch_size,procs_per_node,nodes,instance_type\n"
        b"hello,1.5,0,16,1,1,c5.large\n"
    )
    (found,) = parse_iterations(content, source="x.csv")
    assert found.target == Target("c5.large", 1, 1, 16)
    assert found.epochs[0].planned is None


def test_spreadsheets_leave_their_marks() -> None:
    """A byte order mark, CRLF, blank lines and `2.0` for 2 are read as what they mean."""
    content = f"\ufeff{HEADER}\r\n\r\nA,m5.large,2.0,1,32.0,0,0,0,782,1.5\r\n,,,\r\n".encode()
    (found,) = parse_iterations(content, source="x.csv")
    assert found.target == Target("m5.large", 2, 1, 32)


def test_two_times_for_one_iteration_are_two_launches() -> None:
    """A configuration that was started twice in one study stays apart."""
    found = parse_iterations(lines(row(0, 1.0), row(0, 2.0), row(1, 1.0)), source="x.csv")
    assert [item.number for item in found] == [0, 1]
    assert found[0].epochs[0].seconds == {0: 1.0, 1: 1.0}


def test_another_length_of_the_epoch_is_another_launch() -> None:
    """The same cluster on another data set says nothing of the same epoch."""
    other = row(1, 2.0).replace(",782,", ",157,")
    assert len(parse_iterations(lines(row(0, 1.0), other), source="x.csv")) == 2


def test_a_row_without_the_length_joins_the_others() -> None:
    """An empty cell is filled from the rows of the same launch."""
    bare = row(1, 2.0).replace(",782,", ",,")
    (found,) = parse_iterations(lines(row(0, 1.0), bare), source="x.csv")
    assert found.epochs[0].planned == 782


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (row(0, -1), "line 3: seconds is '-1', not a positive number"),
        (row(0, "nan"), "line 3: seconds is 'nan'"),
        (row(0, "1,5"), "line 3: more cells than columns"),
        (row(0, ""), "line 3: seconds is empty"),
        (row(782, 1.0), "line 3: iteration 782 of 782"),
        ("A,m5.large,two,1,32,0,0,0,782,1.0", "line 3: nodes is 'two'"),
        ("A,m5.large,0,1,1.5,0,0,0,782,1.0", "line 3: batch_size is '1.5'"),
        ("A,,2,1,32,0,0,0,782,1.0", "line 3: instance_type is empty"),
        ("A,m5.large,2", "line 3: procs_per_node is empty"),
    ],
)
def test_a_bad_line_is_named_by_its_number(bad: str, words: str) -> None:
    """The number is that of the line in the file, the header being line 1."""
    with pytest.raises(DataError) as raised:
        parse_iterations(lines(row(1, 1.0), bad), source="x.csv")
    assert f"x.csv, {words}" in str(raised.value)


def test_all_bad_lines_are_told_at_once_but_not_a_screenful() -> None:
    """Ten are shown, the others are counted."""
    with pytest.raises(DataError, match="and 5 more") as raised:
        parse_iterations(lines(*(row(index, "x") for index in range(15))), source="x.csv")
    assert "line 2: seconds" in str(raised.value)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "no column instance_type"),
        (b"study,rank\nA,0\n", "line 1: no column instance_type, nodes"),
        (f"{HEADER}\n".encode(), "no iterations in it"),
        (b"\x1f\x8bbroken", "no file of iterations"),
        (gzip.compress(DATA.read_bytes())[:-9], "no file of iterations"),
        (b"\xff\xfe\x00", "no file of iterations"),
        (b"a\0b", "this is no text"),
    ],
)
def test_what_is_no_such_file_is_refused(content: bytes, words: str) -> None:
    """An empty, foreign or broken file is an error with its name, never a crash."""
    with pytest.raises(DataError, match=r"x\.csv") as raised:
        parse_iterations(content, source="x.csv")
    assert words in str(raised.value)


CELL = st.one_of(
    st.text(alphabet='0123456789.,-+eE"\n naif', max_size=6),
    st.sampled_from(["1", "2", "1e999", "1_000", "٣", "inf", "0x10", "1e5"]),
)


@given(st.lists(st.lists(CELL, max_size=11), max_size=6))
def test_no_file_makes_it_crash(rows: list[list[str]]) -> None:
    """Whatever stands in the cells: launches, or a DataError."""
    try:
        found = parse_iterations(lines(*(",".join(cells) for cells in rows)), source="x.csv")
    except DataError:
        return
    assert all(value > 0 for item in found for value in item.epochs[0].seconds.values())
