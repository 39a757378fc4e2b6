"""Colours by the name of their role, for light and dark: one source for the page and its charts.

The series' colours are told apart by colour-blind people (after Okabe and Ito), and each series
has a symbol of its own besides. In a chart, a role is written `@ink`; the page's script puts in
the colour that fits the reader's light.
"""

from __future__ import annotations

from collections.abc import Mapping

SERIES = 6
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "x", "star")
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")

_LIGHT: Mapping[str, str] = {
    "page": "#f5f6f8",
    "paper": "#ffffff",
    "ink": "#1c2127",
    "muted": "#59636e",
    "line": "#dde2e8",
    "grid": "#e9edf1",
    "accent": "#00619a",
    "accent-soft": "#e8f2f9",
    "warn": "#a13d00",
    "warn-soft": "#fdf1e8",
    "base": "#8d97a3",
    "series-0": "#0072b2",
    "series-1": "#d55e00",
    "series-2": "#009e73",
    "series-3": "#b3578b",
    "series-4": "#b88300",
    "series-5": "#2f9bd6",
}

_DARK: Mapping[str, str] = {
    "page": "#12151a",
    "paper": "#1a1f26",
    "ink": "#e8ebef",
    "muted": "#a5afba",
    "line": "#313942",
    "grid": "#29303a",
    "accent": "#74bdec",
    "accent-soft": "#17293a",
    "warn": "#ffab78",
    "warn-soft": "#33231a",
    "base": "#77828e",
    "series-0": "#5bb0e6",
    "series-1": "#ff9257",
    "series-2": "#35c79b",
    "series-3": "#e79cc6",
    "series-4": "#eebd53",
    "series-5": "#a6d8f7",
}


# How much of a series' colour its bars keep, so that letters and lines upon them stay clear.
_BAR_SHARE_LIGHT = 0.7
_BAR_SHARE_DARK = 0.42
# As the web's accessibility guidelines weigh red, green and blue.
_WEIGHTS = (0.2126, 0.7152, 0.0722)
_KNEE = 0.03928


def light() -> dict[str, str]:
    """Return the colours for a bright page, those of bars included."""
    return _with_bars(_LIGHT, _BAR_SHARE_LIGHT)


def dark() -> dict[str, str]:
    """Return the colours for a dark page, those of bars included."""
    return _with_bars(_DARK, _BAR_SHARE_DARK)


def _with_bars(colours: Mapping[str, str], share: float) -> dict[str, str]:
    names = [name for name in colours if name == "base" or name.startswith("series-")]
    bars = {f"bar-{name}": _mixed(colours[name], colours["paper"], share) for name in names}
    return {**colours, **bars}


def _mixed(one: str, other: str, share: float) -> str:
    pairs = zip(_channels(one), _channels(other), strict=True)
    return "#" + "".join(f"{round(255 * (a * share + b * (1 - share))):02x}" for a, b in pairs)


def contrast(one: str, other: str) -> float:
    """Return the contrast of two colours: 1 is none, 4.5 is enough to read, 21 is most."""
    bright, dim = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (bright + 0.05) / (dim + 0.05)


def _luminance(colour: str) -> float:
    linear = (
        ((part + 0.055) / 1.055) ** 2.4 if part > _KNEE else part / 12.92
        for part in _channels(colour)
    )
    return sum(weight * part for weight, part in zip(_WEIGHTS, linear, strict=True))


def _channels(colour: str) -> list[float]:
    return [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]


def css_variables(colours: Mapping[str, str]) -> str:
    """Return the colours as declarations, one a line."""
    return "\n".join(f"  --{name}: {value};" for name, value in colours.items())


def series_colour(index: int) -> str:
    """Return the role of the index-th series; they repeat after the last."""
    return f"@series-{index % SERIES}"


def series_symbol(index: int) -> str:
    """Return the symbol of the index-th series."""
    return SYMBOLS[index % len(SYMBOLS)]


def series_dash(index: int) -> str:
    """Return the line style of the index-th series."""
    return DASHES[index % len(DASHES)]
