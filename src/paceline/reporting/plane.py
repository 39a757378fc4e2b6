"""The plane of time and cost: what an epoch takes and what it costs, and what nothing beats."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from paceline.measure.costs import cost_per_epoch_usd, expected_epoch_s, pareto_front
from paceline.model.summary import ConfigurationSummary, Estimate, StudySummary
from paceline.reporting.chart import Chart, Layout, Trace, base_layout, error_bars, label, title
from paceline.reporting.numbers import plus_minus
from paceline.reporting.palette import series_colour, series_symbol
from paceline.reporting.series import Series, series_of
from paceline.reporting.table import short_title, telling_title

_HEIGHT_PX = 420
# Of more points than these, names would lie upon each other: only those of the front are shown.
_MOST_LABELS = 6
_Point = tuple[ConfigurationSummary, Estimate, Estimate]


def plane_chart(summary: StudySummary) -> Chart | None:
    """Return the plane; None where no price is known, or of one configuration only."""
    points = _points(summary.configurations)
    if len(points) < 2:  # noqa: PLR2004 - a plane with one point compares nothing
        return None
    front = front_of(summary)
    traces = [_front_line(points, front)]
    for series in series_of(summary.configurations, summary.scaling):
        # A line of each series begins with the baseline; a point it is of the first only.
        items = series.items if series.index == 0 else tuple(_others(series))
        own = _points(items)
        if own:
            traces += [_samples(series, items), _means(series, own, summary, front)]
    names = ", ".join(
        telling_title(item.configuration, summary.configurations, summary.scaling) for item in front
    )
    return Chart(
        "plane",
        "Time and cost of an epoch",
        f"Nearer to the corner is better. Nothing beats {names} in both.",
        traces,
        _layout(),
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


def _layout() -> Layout:
    layout = base_layout(
        height_px=_HEIGHT_PX,
        x={"title": title("s per epoch"), "rangemode": "tozero"},
        y={"title": title("USD per epoch"), "rangemode": "tozero", "tickformat": ".3~g"},
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
        "textposition": "top right",
        "textfont": {"color": "@ink", "size": 12},
        "customdata": [
            f"{label(short_title(item.configuration))}<br>{plus_minus(seconds)} s per epoch"
            f"<br>{plus_minus(cost)} USD per epoch"
            for item, seconds, cost in own
        ],
        "hovertemplate": "%{customdata}<extra></extra>",
    }


def _others(series: Series) -> Iterator[ConfigurationSummary]:
    return (item for item in series.items if not item.is_baseline)


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
