"""Where the time of an iteration goes: one stacked bar per configuration."""

from __future__ import annotations

from paceline.model.summary import ConfigurationSummary, Estimate, StudySummary, TimeParts
from paceline.reporting.chart import Chart, Trace, base_layout, label, title
from paceline.reporting.numbers import Unit, plain, plus_minus, time_unit
from paceline.reporting.table import short_title, telling_title

_ROW_PX = 46
_FRAME_PX = 120
# Colour, pattern and words: each tells the parts apart by itself, on paper too.
_LOOKS = (
    ("compute", "@bar-series-0", ""),
    ("waiting for other ranks", "@bar-series-1", "/"),
    ("input", "@bar-series-2", "."),
)


def shares_chart(summary: StudySummary) -> Chart | None:
    """Return the stacked bars; None where no configuration told its parts."""
    known = [(item, item.parts) for item in summary.configurations if item.parts is not None]
    if not known:
        return None
    unit = time_unit(_total_s(parts) for _, parts in known)
    height_px = _FRAME_PX + _ROW_PX * len(known)
    titles = [
        telling_title(item.configuration, summary.configurations, summary.scaling)
        for item, _ in known
    ]
    layout = base_layout(
        height_px=height_px,
        x={"title": title(f"{unit.name} per iteration"), "rangemode": "tozero"},
        y={
            "tickmode": "array",
            "tickvals": list(range(len(known))),
            "ticktext": [label(text) for text in titles],
            "range": [len(known) - 0.5, -0.5],
            "showgrid": False,
            "zeroline": False,
            "tickfont": {"color": "@ink"},
        },
    )
    layout.update({"barmode": "stack", "bargap": 0.3, "showlegend": True})
    layout["margin"]["t"] = 40
    layout["legend"]["traceorder"] = "normal"
    traces = [_part(index, known, unit) for index in range(len(_LOOKS))]
    return Chart(
        "shares",
        "Where the time goes",
        "Of an iteration, the mean of all ranks. Communication that hides behind compute costs "
        "no time and is not shown.",
        traces,
        layout,
        height_px,
    )


def _part(index: int, known: list[tuple[ConfigurationSummary, TimeParts]], unit: Unit) -> Trace:
    name, colour, pattern = _LOOKS[index]
    values = [_three(parts)[index] for _, parts in known]
    totals = [_total_s(parts) for _, parts in known]
    shares = [
        value.mean / total if total > 0 else 0.0
        for value, total in zip(values, totals, strict=True)
    ]
    return {
        "type": "bar",
        "orientation": "h",
        "name": name,
        "y": list(range(len(known))),
        "x": [value.mean * unit.per_second for value in values],
        "text": [f"{share:.0%}" if share >= _LEGIBLE else "" for share in shares],
        "textposition": "inside",
        "insidetextanchor": "middle",
        "constraintext": "none",
        "textangle": 0,
        "textfont": {"color": "@ink", "size": 13},
        "marker": {
            "color": colour,
            "line": {"color": "@paper", "width": 1},
            "pattern": {"shape": pattern, "fillmode": "overlay", "fgopacity": 0.45, "size": 7},
        },
        "customdata": [
            f"{label(short_title(item.configuration))}<br>{name}: "
            f"{plus_minus(value, unit.per_second)} {unit.name} "
            f"({plain(100 * share)}%, n={value.n})"
            for (item, _), value, share in zip(known, values, shares, strict=True)
        ],
        "hovertemplate": "%{customdata}<extra></extra>",
    }


# Below this share a number does not fit into its bar.
_LEGIBLE = 0.12


def _three(parts: TimeParts) -> tuple[Estimate, Estimate, Estimate]:
    return parts.compute_s, parts.wait_s, parts.input_s


def _total_s(parts: TimeParts) -> float:
    return sum(part.mean for part in _three(parts))
