"""One line per configuration: its mean, its interval, and every sample."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from paceline.measure.costs import cost_per_epoch_usd
from paceline.model.summary import ConfigurationSummary, Estimate, Sample, StudySummary
from paceline.reporting.chart import (
    Chart,
    Trace,
    base_layout,
    cut_words,
    error_bars,
    label,
    title,
    within,
)
from paceline.reporting.numbers import common_decimals, plain, plus_minus
from paceline.reporting.series import colours_of
from paceline.reporting.table import iteration_unit, short_title, telling_title

Overall = Callable[[ConfigurationSummary], Estimate | None]
Single = Callable[[Sample], float | None]

_ROW_PX = 52
_FRAME_PX = 84
_MEAN_ABOVE = 0.2
_SAMPLES_BELOW = 0.15


def throughput_chart(summary: StudySummary) -> Chart | None:
    """Return bars of throughput; None where nobody counted items."""
    if not any(item.items_per_s for item in summary.configurations):
        return None
    return _chart(
        summary,
        name="throughput",
        heading="Throughput",
        caption="More is better.",
        axis=f"{summary.unit} per second",
        overall=lambda item: item.items_per_s,
        single=lambda sample: sample.items_per_s,
        as_bars=True,
    )


def iteration_chart(summary: StudySummary) -> Chart | None:
    """Return the time of an iteration; None where there were none."""
    if not any(item.iteration_s for item in summary.configurations):
        return None
    unit = iteration_unit(summary)
    return _chart(
        summary,
        name="iteration",
        heading="Time per iteration",
        caption="Less is better.",
        axis=f"{unit.name} per iteration",
        overall=lambda item: item.iteration_s,
        single=lambda sample: sample.iteration_s,
        factor=unit.per_second,
    )


def time_chart(summary: StudySummary) -> Chart | None:
    """Return the time of epochs, or of whole runs where there is nothing finer."""
    if any(item.epoch_s for item in summary.configurations):
        return _chart(
            summary,
            name="epoch",
            heading="Time per epoch",
            caption="Less is better.",
            axis="s per epoch",
            overall=lambda item: item.epoch_s,
            single=lambda sample: sample.epoch_s,
        )
    finer = any(item.items_per_s or item.iteration_s for item in summary.configurations)
    if finer or not any(item.wall_s for item in summary.configurations):
        return None
    return _chart(
        summary,
        name="wall",
        heading="Wall time",
        caption="From start to end, measured from outside. Less is better.",
        axis="s",
        overall=lambda item: item.wall_s,
        single=lambda sample: sample.wall_s,
    )


def cost_chart(summary: StudySummary) -> Chart | None:
    """Return what an epoch costs; None where no price is known."""
    if not any(item.cost_per_epoch_usd for item in summary.configurations):
        return None
    return _chart(
        summary,
        name="cost",
        heading="Cost per epoch",
        caption="Less is better.",
        axis="USD per epoch",
        overall=lambda item: item.cost_per_epoch_usd,
        single=cost_per_epoch_usd,
    )


def _chart(
    summary: StudySummary,
    *,
    name: str,
    heading: str,
    caption: str,
    axis: str,
    overall: Overall,
    single: Single,
    factor: float = 1.0,
    as_bars: bool = False,
) -> Chart:
    items = summary.configurations
    height_px = _FRAME_PX + _ROW_PX * len(items)
    room = within([overall(item) for item in items], factor)
    layout = base_layout(
        height_px=height_px,
        x={"title": title(axis), **room},
        y={
            "tickmode": "array",
            "tickvals": list(range(len(items))),
            "ticktext": [_tick(item, summary) for item in items],
            "range": [len(items) - 0.5, -0.5],
            "showgrid": False,
            "zeroline": False,
            "tickfont": {"color": "@ink"},
        },
    )
    layout["bargap"] = 0.26
    colours = colours_of(items, summary.scaling)
    traces = [_means(items, colours, overall, factor), _samples(items, single, factor, axis)]
    if as_bars:
        traces.insert(0, _bars(items, colours, overall, factor))
    caption += f" Diamonds: mean and 95% interval; circles: samples.{cut_words(room)}"
    return Chart(name, heading, caption, traces, layout, height_px)


def _tick(item: ConfigurationSummary, summary: StudySummary) -> str:
    title = telling_title(item.configuration, summary.configurations, summary.scaling)
    text = label(title)
    if item.is_baseline:
        return f"{text}<br><i>baseline</i>"
    missing = item.planned - len(item.good)
    return f"{text}<br><i>{len(item.good)} of {item.planned}</i>" if missing > 0 else text


def _bars(
    items: Sequence[ConfigurationSummary],
    colours: Sequence[str],
    overall: Overall,
    factor: float,
) -> Trace:
    estimates = [overall(item) for item in items]
    decimals = common_decimals(estimates, factor)
    return {
        "type": "bar",
        "orientation": "h",
        "y": list(range(len(items))),
        "x": [None if one is None else one.mean * factor for one in estimates],
        "text": [
            "" if one is None else plus_minus(one, factor, decimals).value for one in estimates
        ],
        "textposition": "inside",
        "insidetextanchor": "start",
        "constraintext": "none",
        "textangle": 0,
        "textfont": {"color": "@ink", "size": 13},
        "marker": {"color": [f"@bar-{colour[1:]}" for colour in colours]},
        "hoverinfo": "skip",
    }


def _means(
    items: Sequence[ConfigurationSummary],
    colours: Sequence[str],
    overall: Overall,
    factor: float,
) -> Trace:
    """Return the means with their intervals, in the upper half of each row."""
    estimates = [overall(item) for item in items]
    return {
        "type": "scatter",
        "mode": "markers",
        "y": [row - _MEAN_ABOVE for row in range(len(items))],
        "x": [None if one is None else one.mean * factor for one in estimates],
        "marker": {
            "color": list(colours),
            "symbol": "diamond",
            "size": 9,
            "line": {"color": "@ink", "width": 1.5},
        },
        "error_x": error_bars(estimates, factor),
        "text": [_mean_words(item, overall(item), factor) for item in items],
        "hovertemplate": "%{text}<extra></extra>",
    }


def _mean_words(item: ConfigurationSummary, one: Estimate | None, factor: float) -> str:
    if one is None:
        return ""
    name = label(short_title(item.configuration))
    return f"{name}<br>mean of {one.n}: {plus_minus(one, factor)}"


def _samples(
    items: Sequence[ConfigurationSummary], single: Single, factor: float, axis: str
) -> Trace:
    """Return every sample as a dot, in the lower half of its row, none hiding another."""
    x: list[float] = []
    y: list[float] = []
    texts: list[str] = []
    for row, item in enumerate(items):
        known = [(sample, value) for sample in item.good if (value := single(sample)) is not None]
        step = min(0.09, 0.27 / max(1, len(known)))
        for position, (sample, value) in enumerate(known):
            x.append(value * factor)
            y.append(row + _SAMPLES_BELOW + (position - (len(known) - 1) / 2) * step)
            name = f"{short_title(item.configuration)}, sample {sample.index}"
            texts.append(f"{label(name)}<br>{plain(value * factor)} {label(axis)}")
    return {
        "type": "scatter",
        "mode": "markers",
        "x": x,
        "y": y,
        "text": texts,
        "hovertemplate": "%{text}<extra></extra>",
        "marker": {
            "color": "@paper",
            "size": 7,
            "symbol": "circle",
            "line": {"color": "@ink", "width": 1.4},
        },
    }
