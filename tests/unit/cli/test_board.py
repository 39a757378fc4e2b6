"""What a terminal shows of a run that goes on, at any width, in words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from paceline.cli import board
from paceline.model.live import RankNow, RunNow
from paceline.model.summary import StudyProgress
from tests.fakes.findings import nothing_found


def rank(number: int, *, lag: float | None = None) -> RankNow:
    """Return how a rank of a DCGAN stands."""
    return RankNow(
        rank=number,
        host="node7",
        iteration=12,
        of=27,
        iteration_s=0.1234,
        items_per_s=129.66,
        wait_share=0.081,
        input_share=0.012,
        metrics={"loss_d": 1.36, "loss_g": 0.8, "d_x": 0.5},
        lag=lag,
    )


NOW = RunNow("iteration 12/27", 0.44, (rank(0), rank(1, lag=1.31)), 2593.2, "img")


def test_a_run_in_a_line() -> None:
    """Progress, throughput, waiting, losses and who lags, without any colour."""
    assert board.run_words(NOW) == (
        "iteration 12/27 · 2593 img/s · waiting 8% · loss_d 1.36 · loss_g 0.8 · "
        "rank 1 lags (1.31 x)"
    )
    assert board.run_words(RunNow("starting", 0.0)) == "starting"


def test_each_rank_has_a_line() -> None:
    """The table has what is known of each rank; a straggler is called one."""
    assert board.rank_table(NOW, width=100) == (
        "rank  host   iteration  img/s  ms/it  waiting  input  loss_d  loss_g\n"
        "0     node7  12/27      129.7  123.4  8%       1%     1.36    0.8\n"
        "1     node7  12/27      129.7  123.4  8%       1%     1.36    0.8     straggler, 1.31 x"
    )


@pytest.mark.parametrize("width", [40, 80, 120])
def test_no_line_is_longer_than_the_terminal(width: int) -> None:
    """What does not fit is cut and marked as cut."""
    lines = board.rank_table(NOW, width=width).splitlines()
    assert max(map(len, lines)) <= width
    assert (width > 80) == ("…" not in lines[-1])


def test_of_many_ranks_the_laggard_is_shown() -> None:
    """Sixty-four ranks do not fill the screen, and the one that matters is among them."""
    ranks = tuple(rank(number, lag=1.4 if number == 50 else None) for number in range(64))
    lines = board.rank_table(RunNow("", 0.0, ranks), width=100).splitlines()
    assert len(lines) == 10
    assert any(line.startswith("50 ") and "straggler" in line for line in lines)
    assert lines[-1] == "… and 56 more ranks"


def test_what_nobody_reports_has_no_column() -> None:
    """A script that reports iterations alone has no columns of dashes."""
    bare = RunNow("", 0.0, (RankNow(0, "", 3, iteration_s=0.5),))
    assert board.rank_table(bare, width=80) == "rank  iteration  ms/it\n0     3          500"


def test_money_is_told_where_a_price_is_known() -> None:
    """Spent and to come, in dollars; nothing where nobody knows the price."""
    known = StudyProgress(nothing_found(), 1, 4, 60.0, spent_usd=0.75, remaining_usd=0.0123)
    assert board.money(known) == "0.75 USD spent, about 0.012 to come"
    assert board.money(StudyProgress(nothing_found(), 1, 4, 60.0)) == ""


def test_what_an_adaptive_study_may_do_without_is_at_most() -> None:
    """Its rest is a bound and no estimate; that of any other study is about right."""
    progress = StudyProgress(nothing_found(), 1, 9, 60.0, spent_usd=0.5, remaining_usd=1.0)
    assert board.money(progress).endswith("about 1.00 to come")
    assert board.money(replace(progress, at_most=True)).endswith("at most 1.00 to come")
