"""Every iteration of every rank of every sample, one chart per configuration."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from paceline.model.summary import ConfigurationSummary, RankSample, Sample, StudySummary
from paceline.reporting.chart import Chart, Layout, Trace, base_layout, title
from paceline.reporting.numbers import Unit, plain, time_unit
from paceline.reporting.palette import series_colour, series_dash
from paceline.reporting.table import short_title

_HEIGHT_PX = 300
_MOST_POINTS = 400
_MOST_MARKED = 60
_MOST_NAMED = 16
_HEADROOM = 1.2


def timeline_charts(summary: StudySummary) -> tuple[Chart, ...]:
    """Return the charts of all configurations whose ranks told their iterations."""
    charts = (_chart(index, item) for index, item in enumerate(summary.configurations))
    return tuple(chart for chart in charts if chart is not None)


def _chart(index: int, item: ConfigurationSummary) -> Chart | None:
    pairs = [(sample, rank) for sample in item.samples for rank in sample.ranks]
    measured = [value for _, rank in pairs for value in rank.iteration_s]
    if not measured:
        return None
    unit = time_unit(measured)
    longest = max(len(rank.warmup_s) + len(rank.iteration_s) for _, rank in pairs)
    # A bin holds the mean of so many neighbours, so that a long run does not make a heavy page.
    bin_size = -(-longest // _MOST_POINTS)
    traces = [_trace(sample, rank, unit, bin_size, longest) for sample, rank in pairs]
    warmup = max(len(rank.warmup_s) for _, rank in pairs)
    caption = "One line per sample and rank; the shaded warm-up counts in no figure."
    if bin_size > 1:
        caption += f" Each point is the mean of {bin_size} iterations."
    layout = _layout(unit, warmup, max(measured) * unit.per_second * _HEADROOM)
    layout["showlegend"] = len(traces) <= _MOST_NAMED
    layout["annotations"] = _clipped(pairs, max(measured) * _HEADROOM)
    name = short_title(item.configuration)
    return Chart(f"timeline-{index}", name, caption, traces, layout, _HEIGHT_PX)


def _trace(sample: Sample, rank: RankSample, unit: Unit, bin_size: int, longest: int) -> Trace:
    times = [*rank.warmup_s, *rank.iteration_s]
    starts = range(0, len(times), bin_size)
    name = f"sample {sample.index}, rank {rank.rank}"
    name += " (failed)" if sample.failed is not None else ""
    colour = series_colour(sample.index - 1)
    return {
        "type": "scatter",
        "mode": "lines+markers" if longest <= _MOST_MARKED else "lines",
        "name": name,
        "x": list(starts),
        "y": [
            round(fmean(times[start : start + bin_size]) * unit.per_second, 4) for start in starts
        ],
        "line": {"color": colour, "width": 1.4, "dash": series_dash(rank.rank)},
        "marker": {"color": colour, "size": 5, "symbol": "x" if sample.failed else "circle"},
        "opacity": 0.9,
        "hovertemplate": f"{name}<br>iteration %{{x}}: %{{y:.4~g}} {unit.name}<extra></extra>",
    }


def _layout(unit: Unit, warmup: int, top: float) -> Layout:
    layout = base_layout(
        height_px=_HEIGHT_PX,
        x={"title": title("iteration"), "zeroline": False, "showgrid": False},
        y={"title": title(unit.name), "range": [0, top]},
    )
    layout["margin"]["t"] = 40
    layout["legend"]["font"] = {"size": 11}
    if warmup:
        layout["shapes"] = [
            {
                "type": "rect",
                "xref": "x",
                "yref": "paper",
                "x0": -0.5,
                "x1": warmup - 0.5,
                "y0": 0,
                "y1": 1,
                "fillcolor": "@grid",
                "line": {"width": 0},
                "layer": "below",
            }
        ]
    return layout


def _clipped(pairs: Sequence[tuple[Sample, RankSample]], top_s: float) -> list[dict[str, object]]:
    """Say how long a warm-up took that would squeeze everything else to the ground."""
    longest_s = max((value for _, rank in pairs for value in rank.warmup_s), default=0.0)
    if longest_s <= top_s:
        return []
    unit = time_unit([longest_s])
    shown = plain(longest_s * unit.per_second)
    warmup = max(len(rank.warmup_s) for _, rank in pairs)
    return [
        {
            "text": f"slowest warm-up iteration: {shown} {unit.name}",
            "xref": "x",
            "yref": "paper",
            "x": warmup - 0.4,
            "y": 1,
            "xanchor": "left",
            "yanchor": "top",
            "showarrow": False,
            "font": {"color": "@muted", "size": 12},
        }
    ]
