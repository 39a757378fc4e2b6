"""The plane of time and cost: what an epoch takes and what it costs, and what nothing beats."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from paceline.measure.costs import cost_per_epoch_usd, expected_epoch_s, pareto_front
from paceline.model.summary import ConfigurationSummary, Estimate, StudySummary
from paceline.reporting.chart import (
    Chart,
    Layout,
    Trace,
    base_layout,
    cut_words,
    error_bars,
    label,
    title,
    within,
)
from paceline.reporting.numbers import plus_minus
from paceline.reporting.palette import series_colour, series_symbol
from paceline.reporting.series import Series, series_of
from paceline.reporting.table import short_title, telling_title

_HEIGHT_PX = 420
# Of more points than these, names would lie upon each other: only those of the front are shown.
_MOST_LABELS = 6
_ROOM_FOR_A_NAME = 0.3
_Point = tuple[ConfigurationSummary, Estimate, Estimate]


def plane_chart(summary: StudySummary) -> Chart | None:
    """Return the plane; None where no price is known, or of one configuration only."""
    points = _points(summary.configurations)
    if len(points) < 2:  # noqa: PLR2004 - a plane with one point compares nothing
        return None
    front = front_of(summary)
    traces = [_front_line(points, front)]
    for series in _each_once(summary):
        own = _points(series.items)
        if own:
            traces += [_samples(series, series.items), _means(series, own, summary, front)]
    names = ", ".join(
        telling_title(item.configuration, summary.configurations, summary.scaling) for item in front
    )
    time = within([seconds for _, seconds, _ in points])
    cost = within([dollars for _, _, dollars in points])
    cut = cut_words(time, cost)
    return Chart(
        "plane",
        "Time and cost of an epoch",
        f"Nearer to the corner is better. Nothing beats {names} in both.{cut}",
        traces,
        _layout(time, cost),
        _HEIGHT_PX,
    )


def front_of(summary: StudySummary) -> tuple[ConfigurationSummary, ...]:
    """Return the configurations that no other beats in both time and cost, the quickest first."""
    points = _points(summary.configurations)
    places = {index: item for index, (item, _, _) in enumerate(points)}
    front = pareto_front(
        [(index, seconds.mean, cost.mean) for index, (_, seconds, cost) in enumerate(points)]
    )
    return tuple(places[index] for index in front)


def _points(items: tuple[ConfigurationSummary, ...]) -> list[_Point]:
    return [
        (item, item.expected_epoch_s, item.cost_per_epoch_usd)
        for item in items
        if item.expected_epoch_s is not None and item.cost_per_epoch_usd is not None
    ]


def _layout(time: Layout, cost: Layout) -> Layout:
    layout = base_layout(
        height_px=_HEIGHT_PX,
        x={"title": title("s per epoch"), **time},
        y={"title": title("USD per epoch"), **cost, "tickformat": ".3~g"},
    )
    layout["showlegend"] = True
    layout["margin"]["t"] = 44
    return layout


def _front_line(points: list[_Point], front: tuple[ConfigurationSummary, ...]) -> Trace:
    on_it = [(seconds, cost) for item, seconds, cost in points if item in front]
    ordered = sorted(on_it, key=lambda pair: pair[0].mean)
    return {
        "type": "scatter",
        "mode": "lines",
        "name": "nothing is better in both",
        "x": [seconds.mean for seconds, _ in ordered],
        "y": [cost.mean for _, cost in ordered],
        "line": {"color": "@muted", "dash": "dot", "width": 1.5, "shape": "hv"},
        "hoverinfo": "skip",
    }


def _means(
    series: Series,
    own: list[_Point],
    summary: StudySummary,
    front: tuple[ConfigurationSummary, ...],
) -> Trace:
    colour = series_colour(series.index)
    crowd = len(summary.configurations)
    times, costs = [seconds for _, seconds, _ in own], [cost for _, _, cost in own]
    return {
        "type": "scatter",
        "mode": "markers+text",
        "name": label(series.name),
        "x": [one.mean for one in times],
        "y": [one.mean for one in costs],
        "error_x": {**error_bars(times), "color": colour, "thickness": 1.2},
        "error_y": {**error_bars(costs), "color": colour, "thickness": 1.2},
        "marker": {
            "color": colour,
            "size": [13 if item in front else 9 for item, _, _ in own],
            "symbol": series_symbol(series.index),
            "line": {"color": "@ink", "width": [1.6 if item in front else 0 for item, _, _ in own]},
        },
        "text": [
            label(telling_title(item.configuration, summary.configurations, summary.scaling))
            if crowd <= _MOST_LABELS or item in front
            else ""
            for item, _, _ in own
        ],
        "cliponaxis": False,
        "textposition": [_beside(item, summary) for item, _, _ in own],
        "textfont": {"color": "@ink", "size": 12},
        "customdata": [
            f"{label(short_title(item.configuration))}<br>{plus_minus(seconds)} s per epoch"
            f"<br>{plus_minus(cost)} USD per epoch"
            for item, seconds, cost in own
        ],
        "hovertemplate": "%{customdata}<extra></extra>",
    }


def _beside(item: ConfigurationSummary, summary: StudySummary) -> str:
    """Return where a name stands: of neighbours in time, to either side in turns.

    What lies near the axis has room on its right only.
    """
    points = sorted(_points(summary.configurations), key=lambda point: point[1].mean)
    place = next(
        index
        for index, (other, _, _) in enumerate(points)
        if other.configuration.label == item.configuration.label
    )
    has_room = points[place][1].mean > _ROOM_FOR_A_NAME * points[-1][1].mean
    if place % 2:
        return "bottom right"
    return "top left" if has_room else "top right"


def _each_once(summary: StudySummary) -> Iterator[Series]:
    """Yield the series with every configuration once.

    Many a line begins with the baseline, as a point it is of the first of them. Where it is like
    none of the others, it is a series of its own.
    """
    drawn: set[str] = set()
    groups = series_of(summary.configurations, summary.scaling)
    for series in groups:
        own = tuple(item for item in series.items if item.configuration.label not in drawn)
        drawn.update(item.configuration.label for item in own)
        yield replace(series, items=own)
    rest = tuple(item for item in summary.configurations if item.configuration.label not in drawn)
    if rest:
        yield Series(len(groups), "baseline", rest)


def _samples(series: Series, items: Iterable[ConfigurationSummary]) -> Trace:
    pairs = [
        (seconds, cost)
        for item in items
        for sample in item.good
        if (seconds := expected_epoch_s(sample)) is not None
        and (cost := cost_per_epoch_usd(sample)) is not None
    ]
    return {
        "type": "scatter",
        "mode": "markers",
        "x": [seconds for seconds, _ in pairs],
        "y": [cost for _, cost in pairs],
        "showlegend": False,
        "hoverinfo": "skip",
        "marker": {
            "color": series_colour(series.index),
            "size": 6,
            "opacity": 0.75,
            "symbol": f"{series_symbol(series.index)}-open",
        },
    }
