"""What a terminal shows of a study or a run that goes on: words and tables, no colour needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from paceline.cli import show
from paceline.model.live import RankNow, RunNow
from paceline.model.summary import StudyProgress

_MOST_RANKS = 8
_MOST_METRICS = 3
_LARGE = 1000


def money(progress: StudyProgress, budget_usd: float | None = None) -> str:
    """Return what was spent and what is still to come; nothing where no price is known."""
    if progress.spent_usd is None:
        return ""
    of = "" if budget_usd is None else f" of {usd(budget_usd)}"
    words = f"{usd(progress.spent_usd)}{of} USD spent"
    if progress.remaining_usd:
        words += f", {roughly(progress)} {usd(progress.remaining_usd)} to come"
    return words


def roughly(progress: StudyProgress | None) -> str:
    """Return how a figure of what is to come is meant."""
    return "at most" if progress is not None and progress.at_most else "about"


def usd(value: float) -> str:
    """Return a sum as people write it, small ones with more digits."""
    small = 0.1
    return f"{value:.2f}" if value >= small or value == 0 else f"{value:.2g}"


def run_words(now: RunNow) -> str:
    """Return a run in a line: how far it is, its throughput, what it waits for, its metrics."""
    words = [now.text]
    if now.items_per_s is not None:
        words.append(f"{_number(now.items_per_s)} {now.unit}/s")
    waits = [rank.wait_share for rank in now.ranks if rank.wait_share is not None]
    if waits:
        words.append(f"waiting {sum(waits) / len(waits):.0%}")
    if now.ranks:
        words += [f"{name} {value:.4g}" for name, value in _telling(now.ranks[0].metrics).items()]
    words += [f"rank {rank.rank} lags ({rank.lag:.2f} x)" for rank in now.ranks if rank.lag]
    return " · ".join(words)


def rank_table(now: RunNow, *, width: int) -> str:
    """Return a line for each rank; of many, those that lag and the first, as far as they fit."""
    if not now.ranks:
        return ""
    lagging = [rank for rank in now.ranks if rank.lag]
    others = [rank for rank in now.ranks if not rank.lag]
    shown = sorted([*lagging, *others][:_MOST_RANKS], key=lambda rank: rank.rank)
    names = list(_telling(shown[0].metrics))
    header = ["rank", "host", "iteration", f"{now.unit}/s", "ms/it", "waiting", "input", *names, ""]
    rows = [header, *(_rank_cells(rank, names) for rank in shown)]
    lines = show.columns(_filled_columns(rows)).splitlines()
    left = len(now.ranks) - len(shown)
    if left:
        lines.append(f"… and {left} more ranks")
    return "\n".join(_cut(line, width) for line in lines)


def _rank_cells(rank: RankNow, names: Sequence[str]) -> list[str]:
    of = f"/{rank.of}" if rank.of else ""
    return [
        str(rank.rank),
        rank.host,
        f"{rank.iteration}{of}",
        _number(rank.items_per_s),
        _number(None if rank.iteration_s is None else rank.iteration_s * 1000),
        "-" if rank.wait_share is None else f"{rank.wait_share:.0%}",
        "-" if rank.input_share is None else f"{rank.input_share:.0%}",
        *(_number(rank.metrics.get(name)) for name in names),
        f"straggler, {rank.lag:.2f} x" if rank.lag else "",
    ]


def _filled_columns(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    """Leave out the columns of which nothing is known of any rank."""
    kept = [
        index
        for index in range(len(rows[0]))
        if any(row[index] not in ("-", "") for row in rows[1:])
    ]
    return [[row[index] for index in kept] for row in rows]


def _telling(metrics: Mapping[str, float]) -> dict[str, float]:
    """Return the losses among the metrics; if nothing is called one, the first metrics."""
    losses = {name: value for name, value in metrics.items() if "loss" in name.lower()}
    return dict(list((losses or metrics).items())[:_MOST_METRICS])


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.0f}" if abs(value) >= _LARGE else f"{value:.4g}"


def _cut(line: str, width: int) -> str:
    return line if len(line) <= width else f"{line[: width - 1]}…"
