"""Speedup and efficiency over the number of processes, against the ideal."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from paceline.model.summary import ConfigurationSummary, Estimate, Sample, StudySummary
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
from paceline.reporting.numbers import percent, times
from paceline.reporting.palette import series_colour, series_dash, series_symbol
from paceline.reporting.series import Series, series_of
from paceline.reporting.table import short_title

_HEIGHT_PX = 360
# How far lines with the same numbers of processes are set apart, as a share of the axis.
_DODGE = 0.012

Pick = Callable[[ConfigurationSummary], Estimate | None]


def speedup_chart(summary: StudySummary) -> Chart | None:
    """Return the speedup with the ideal line; None where nothing could be compared."""
    items = [item for item in summary.configurations if item.speedup is not None]
    baseline = next((item for item in items if item.is_baseline), None)
    if baseline is None or len(items) < 2:  # noqa: PLR2004 - a line needs two ends
        return None
    first = baseline.configuration.world_size
    sizes = _sizes(items)
    ideal = _ideal([sizes[0], sizes[-1]], [sizes[0] / first, sizes[-1] / first])
    room = within([*(item.speedup for item in items), _exactly(sizes[-1] / first)])
    return Chart(
        "speedup",
        "Speedup",
        f"How many times as fast as the baseline; the dotted line is ideal.{cut_words(room)}",
        [ideal, *_traces(summary, baseline, lambda item: item.speedup, per_process=False)],
        _layout(sizes, "times the baseline", room),
        _HEIGHT_PX,
    )


def efficiency_chart(summary: StudySummary) -> Chart | None:
    """Return the efficiency; None where nothing could be compared."""
    items = [item for item in summary.configurations if item.efficiency is not None]
    baseline = next((item for item in items if item.is_baseline), None)
    if baseline is None or len(items) < 2:  # noqa: PLR2004 - a line needs two ends
        return None
    sizes = _sizes(items)
    ideal = _ideal([sizes[0], sizes[-1]], [1.0, 1.0])
    room = within([*(item.efficiency for item in items), _exactly(1.0)])
    return Chart(
        "efficiency",
        "Efficiency",
        f"Speedup per process; the dotted line is ideal.{cut_words(room)}",
        [ideal, *_traces(summary, baseline, lambda item: item.efficiency, per_process=True)],
        _layout(sizes, "of the baseline", {**room, "tickformat": ".0%"}),
        _HEIGHT_PX,
    )


def _exactly(value: float) -> Estimate:
    """Return a number that nobody measured, for which there has to be room."""
    return Estimate(n=1, mean=value, median=value)


def _sizes(items: Sequence[ConfigurationSummary]) -> list[int]:
    return sorted({item.configuration.world_size for item in items})


def _layout(sizes: Sequence[int], axis: str, y: Layout) -> Layout:
    margin = max(0.25, (sizes[-1] - sizes[0]) * 0.08)
    layout = base_layout(
        height_px=_HEIGHT_PX,
        x={
            "title": title("processes"),
            "tickmode": "array",
            "tickvals": list(sizes),
            "range": [sizes[0] - margin, sizes[-1] + margin],
            "showgrid": False,
            "zeroline": False,
        },
        y={"title": title(axis), **y},
    )
    layout["showlegend"] = True
    layout["margin"]["t"] = 44
    return layout


def _ideal(x: Sequence[float], y: Sequence[float]) -> Trace:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": "ideal",
        "x": list(x),
        "y": list(y),
        "line": {"color": "@muted", "dash": "dot", "width": 1.5},
        "hoverinfo": "skip",
    }


def _traces(
    summary: StudySummary, baseline: ConfigurationSummary, pick: Pick, *, per_process: bool
) -> list[Trace]:
    groups = series_of(summary.configurations, summary.scaling)
    sizes = _sizes(summary.configurations)
    span = max(1, sizes[-1] - sizes[0])
    traces: list[Trace] = []
    for series in groups:
        offset = (series.index - (len(groups) - 1) / 2) * span * _DODGE
        line = _line(series, pick, offset, per_process=per_process)
        if line["x"]:
            traces.append(_samples(series, baseline, offset, per_process=per_process))
            traces.append(line)
    return traces


def _line(series: Series, pick: Pick, offset: float, *, per_process: bool) -> Trace:
    known = [(item, one) for item in series.items if (one := pick(item)) is not None]
    colour = series_colour(series.index)
    shown = percent if per_process else times
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": label(series.name),
        "x": [item.configuration.world_size + offset for item, _ in known],
        "y": [one.mean for _, one in known],
        "error_y": {**error_bars([one for _, one in known]), "color": colour},
        "line": {"color": colour, "width": 2, "dash": series_dash(series.index)},
        "marker": {"color": colour, "size": 10, "symbol": series_symbol(series.index)},
        "text": [
            f"{label(short_title(item.configuration))}<br>{shown(one)}" for item, one in known
        ],
        "hovertemplate": "%{text}<extra></extra>",
    }


def _samples(
    series: Series, baseline: ConfigurationSummary, offset: float, *, per_process: bool
) -> Trace:
    """Return every sample against the baseline's mean, as small open symbols."""
    x: list[float] = []
    y: list[float] = []
    for item in series.items:
        growth = item.configuration.world_size / baseline.configuration.world_size
        for sample in item.good:
            value = _against(sample, item, baseline)
            if value is not None:
                x.append(item.configuration.world_size + offset)
                y.append(value / growth if per_process else value)
    colour = series_colour(series.index)
    return {
        "type": "scatter",
        "mode": "markers",
        "x": x,
        "y": y,
        "showlegend": False,
        "hoverinfo": "skip",
        "marker": {
            "color": colour,
            "size": 6,
            "opacity": 0.75,
            "symbol": f"{series_symbol(series.index)}-open",
        },
    }


def _against(
    sample: Sample, item: ConfigurationSummary, baseline: ConfigurationSummary
) -> float | None:
    """Return how one sample compares to the baseline's mean, by what the speedup compares."""
    if item.basis == "throughput" and baseline.items_per_s and sample.items_per_s:
        return sample.items_per_s / baseline.items_per_s.mean
    if item.basis == "epoch time" and baseline.epoch_s and sample.epoch_s:
        return baseline.epoch_s.mean / sample.epoch_s
    if item.basis == "wall time" and baseline.wall_s and sample.wall_s:
        return baseline.wall_s.mean / sample.wall_s
    return None
