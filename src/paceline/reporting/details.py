"""Every figure of every configuration in full: n, mean, median, spread, and two intervals."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from paceline.measure.statistics import of_a_new_run
from paceline.model.summary import ConfigurationSummary, Estimate, StudySummary
from paceline.reporting.markup import Html, tag
from paceline.reporting.numbers import MISSING, plain
from paceline.reporting.table import short_title

Pick = Callable[[ConfigurationSummary], Estimate | None]

HEADINGS = (
    "configuration", "figure", "n", "mean", "median", "spread", "mean, 95%", "a new run, 95%",
)  # fmt: skip


def _figures(unit: str) -> tuple[tuple[str, Pick], ...]:
    return (
        (f"{unit}/s", lambda item: item.items_per_s),
        ("s/iteration", lambda item: item.iteration_s),
        ("compute s/iteration", lambda item: item.parts and item.parts.compute_s),
        ("waiting s/iteration", lambda item: item.parts and item.parts.wait_s),
        ("input s/iteration", lambda item: item.parts and item.parts.input_s),
        ("s/epoch", lambda item: item.epoch_s),
        ("s/epoch, from iterations", lambda item: None if item.epoch_s else item.expected_epoch_s),
        ("wall s", lambda item: item.wall_s),
        ("USD/epoch", lambda item: item.cost_per_epoch_usd),
        ("speedup", lambda item: None if item.is_baseline else item.speedup),
        ("efficiency", lambda item: None if item.is_baseline else item.efficiency),
        ("serial fraction (Karp-Flatt)", lambda item: item.serial_fraction),
    )


_RATIOS = frozenset({"speedup", "efficiency", "serial fraction (Karp-Flatt)"})


def detail_rows(summary: StudySummary) -> Iterator[tuple[str, ...]]:
    """Yield the cells of each figure that is known, in the order of `HEADINGS`."""
    for item in summary.configurations:
        for name, pick in _figures(summary.unit):
            value = pick(item)
            if value is not None:
                # A ratio is no property of a run: there is no new one of it.
                new = None if name in _RATIOS else of_a_new_run(value)
                yield (short_title(item.configuration), name, *_cells(value, new))


def _cells(value: Estimate, new: tuple[float, float] | None) -> tuple[str, ...]:
    return (
        str(value.n),
        plain(value.mean),
        plain(value.median),
        plain(value.spread),
        _between(value.low, value.high),
        MISSING if new is None else _between(*new),
    )


def _between(low: float | None, high: float | None) -> str:
    return MISSING if low is None or high is None else f"{plain(low)} to {plain(high)}"


def details_table(summary: StudySummary) -> Html | None:
    """Return the figures as a table; None where there are none."""
    rows = [
        tag("tr", tag("th", cells[0], scope="row"), *(tag("td", cell) for cell in cells[1:]))
        for cells in detail_rows(summary)
    ]
    if not rows:
        return None
    head = tag("thead", tag("tr", *(tag("th", text, scope="col") for text in HEADINGS)))
    return tag("table", head, tag("tbody", *rows), class_="raw")
