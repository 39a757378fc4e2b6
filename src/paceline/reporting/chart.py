"""What a chart is: a plotly figure as plain data, with its words. Colours are roles (`@ink`)."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from paceline.model.summary import Estimate

Trace = dict[str, Any]
Layout = dict[str, Any]

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"


# An axis reaches to at most so many times the largest mean.
_MOST_ROOM = 2.5


@dataclass(frozen=True)
class Chart:
    """One chart: its heading, what it shows in words, and what plotly draws."""

    name: str
    title: str
    caption: str
    data: Sequence[Trace]
    layout: Layout
    height_px: int = 340

    def figure(self) -> dict[str, Any]:
        """Return what the page's script hands to plotly."""
        return {"data": list(self.data), "layout": self.layout}


def base_layout(*, x: Mapping[str, Any], y: Mapping[str, Any], height_px: int) -> Layout:
    """Return a calm layout; the axes' own settings come on top of the common ones."""
    return {
        "height": height_px,
        "margin": {"l": 56, "r": 18, "t": 12, "b": 48},
        "paper_bgcolor": "@paper",
        "plot_bgcolor": "@paper",
        "font": {"family": FONT, "size": 13, "color": "@ink"},
        "hoverlabel": {
            "bgcolor": "@paper",
            "bordercolor": "@line",
            "font": {"color": "@ink", "family": FONT, "size": 13},
        },
        "showlegend": False,
        "legend": {"orientation": "h", "x": 0, "y": 1.02, "xanchor": "left", "yanchor": "bottom"},
        "xaxis": _axis(x),
        "yaxis": _axis(y),
    }


def _axis(own: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "gridcolor": "@grid",
        "linecolor": "@line",
        "zerolinecolor": "@line",
        "tickfont": {"color": "@muted"},
        "automargin": True,
        "fixedrange": True,
        **own,
    }


def title(text: str) -> dict[str, Any]:
    """Return an axis title."""
    return {"text": label(text), "font": {"color": "@muted", "size": 13}, "standoff": 10}


def within(estimates: Sequence[Estimate | None], factor: float = 1.0) -> dict[str, Any]:
    """Return the range of an axis from zero on, as axis settings.

    Where few samples make intervals far longer than what was measured, they are cut at the edge:
    shown whole, they would leave no room for anything else.
    """
    known = [item for item in estimates if item is not None]
    largest = max((item.mean * factor for item in known), default=0.0)
    reach = max((item.high * factor for item in known if item.high is not None), default=0.0)
    if largest <= 0 or reach <= _MOST_ROOM * largest:
        return {"rangemode": "tozero"}
    return {"range": [0.0, _MOST_ROOM * largest]}


def cut_words(*axes: Mapping[str, Any]) -> str:
    """Return what a caption says where an axis cuts intervals; nothing where none does."""
    return (
        " Intervals that reach the edge go on beyond it." if any("range" in a for a in axes) else ""
    )


def error_bars(estimates: Sequence[Estimate | None], factor: float = 1.0) -> dict[str, Any]:
    """Return the intervals as plotly's error bars; None where there is no interval."""
    above = [
        None if item is None or item.high is None else (item.high - item.mean) * factor
        for item in estimates
    ]
    below = [
        # No figure here can be negative: the part of an interval below zero says nothing.
        None if item is None or item.low is None else (item.mean - max(0.0, item.low)) * factor
        for item in estimates
    ]
    return {
        "type": "data",
        "symmetric": False,
        "array": above,
        "arrayminus": below,
        "color": "@ink",
        "thickness": 1.6,
        "width": 5,
    }


def label(text: str) -> str:
    """Return text that plotly shows as it is, tags and all."""
    return html.escape(text, quote=False)
