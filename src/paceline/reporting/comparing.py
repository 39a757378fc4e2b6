"""A comparison of two studies as text, Markdown, CSV, JSON and HTML."""

from __future__ import annotations

import csv
import io
import json
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict

from paceline.model.comparison import ComparedConfiguration, Comparison
from paceline.model.summary import Estimate
from paceline.reporting.chart import Chart, base_layout, error_bars, label, title
from paceline.reporting.html import figure, page
from paceline.reporting.markdown import escaped
from paceline.reporting.markup import Html, join, tag
from paceline.reporting.numbers import MISSING, plus_minus, times
from paceline.reporting.sections import scroll
from paceline.reporting.table import short_title
from paceline.reporting.text import WIDTH, aligned, one_line

HOW_TO_READ = (
    "ratio: how many times as fast the second is, with its 95% interval; a tie is an interval "
    "that includes 1."
)
_UNITS = {"throughput": "{unit}/s", "epoch time": "s/epoch", "wall time": "wall s"}
_ROW_PX, _FRAME_PX = 44, 96


def text(made: Comparison) -> str:
    """Return the comparison for a terminal."""
    rows = [_header(made), *map(_cells, made.configurations)]
    blocks = [
        textwrap.fill(f"{made.first} and {made.second}", WIDTH),
        textwrap.fill(one_line(made.headline), WIDTH),
        aligned(rows, numbers=range(2, 5)) if made.configurations else "",
        textwrap.fill(HOW_TO_READ, WIDTH) if made.configurations else "",
    ]
    if remarks := _remarks(made):
        lines = [textwrap.fill(f"  {one_line(item)}", WIDTH) for item in remarks]
        blocks.append("\n".join(["Notes:", *lines]))
    if made.changed:
        lines = [f"  {path}: {_told(one)} -> {_told(other)}" for path, one, other in _changes(made)]
        blocks.append("\n".join(["What else has changed:", *map(one_line_indented, lines)]))
    return "\n\n".join(block for block in blocks if block) + "\n"


def one_line_indented(line: str) -> str:
    """Return a line without control characters, with its indentation."""
    return f"  {one_line(line)}"


def markdown(made: Comparison) -> str:
    """Return the comparison for a pull request."""
    header = _header(made)
    rows = [header, ["---"] * len(header), *map(_cells, made.configurations)]
    table = "\n".join(
        "| " + " | ".join(cell if cell == "---" else escaped(cell) for cell in row) + " |"
        for row in rows
    )
    blocks = [
        f"# {escaped(made.first)} and {escaped(made.second)}",
        f"**{escaped(made.headline)}**",
        table if made.configurations else "",
        "\n".join(f"- {escaped(item)}" for item in _remarks(made)),
        "\n".join(
            f"- {escaped(path)}: {escaped(_told(one))} -> {escaped(_told(other))}"
            for path, one, other in _changes(made)
        ),
    ]
    return "\n\n".join(block for block in blocks if block) + "\n"


def csv_text(made: Comparison) -> str:
    """Return one line per configuration, its figures in full."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(
        ["configuration", "basis", "verdict", "ratio", "ratio_low", "ratio_high"]
        + [f"{which}_{name}" for which in ("first", "second") for name in ("n", "mean", "spread")]
    )
    for item in made.configurations:
        cells = [item.configuration.label, item.basis, item.verdict, *_ends(item.ratio)]
        for one in (item.first, item.second):
            cells += [None, None, None] if one is None else [one.n, one.mean, one.spread]
        writer.writerow(["" if cell is None else cell for cell in cells])
    return buffer.getvalue()


def json_text(made: Comparison) -> str:
    """Return the comparison as a JSON document."""
    document = {"schema": "paceline.comparison", "schema_version": 1, **asdict(made)}
    for item, compared in zip(document["configurations"], made.configurations, strict=True):
        item["configuration"]["label"] = compared.configuration.label
        item["configuration"]["args"] = dict(compared.configuration.args)
    return json.dumps(document, indent=1, default=str) + "\n"


def html(made: Comparison) -> str:
    """Return the comparison as one page that needs nothing else."""
    chart = ratio_chart(made)
    parts = [
        tag(
            "header",
            tag("p", tag("strong", made.first), " and ", tag("strong", made.second),
                class_="eyebrow"),
            tag("h1", "Which of the two is faster?"),
            tag("p", made.headline, class_="answer"),
        ),
        _table(made),
        tag("div", figure(chart, "card wide"), class_="charts") if chart else None,
        _list("Remarks", _remarks(made)),
        _changes_table(made),
        tag("footer", "Made by Paceline. This file is complete: it loads nothing."),
    ]  # fmt: skip
    name = f"{made.first} and {made.second}"
    return page(name, tag("main", join(parts, "\n")), [chart] if chart else [])


def ratio_chart(made: Comparison) -> Chart | None:
    """Return the ratios with their intervals around the line where nothing has changed."""
    known = [(item, item.ratio) for item in made.configurations if item.ratio is not None]
    if not known:
        return None
    height_px = _FRAME_PX + _ROW_PX * len(known)
    ratios = [ratio for _, ratio in known]
    layout = base_layout(
        height_px=height_px,
        x={"title": title(f"times as fast as {made.first}")},
        y={
            "tickmode": "array",
            "tickvals": list(range(len(known))),
            "ticktext": [label(short_title(item.configuration)) for item, _ in known],
            "range": [len(known) - 0.5, -0.5],
            "zeroline": False,
            "tickfont": {"color": "@ink"},
        },
    )
    layout["shapes"] = [
        {"type": "line", "x0": 1, "x1": 1, "yref": "paper", "y0": 0, "y1": 1,
         "line": {"color": "@muted", "dash": "dot", "width": 1.5}}
    ]  # fmt: skip
    trace = {
        "type": "scatter",
        "mode": "markers",
        "x": [ratio.mean for ratio in ratios],
        "y": list(range(len(known))),
        "error_x": error_bars(ratios),
        "marker": {
            "color": "@series-0",
            "size": 11,
            "symbol": ["circle-open" if item.verdict == "tie" else "circle" for item, _ in known],
        },
        "text": [
            f"{label(short_title(item.configuration))}<br>{times(ratio)}: {item.verdict}"
            for item, ratio in known
        ],
        "hovertemplate": "%{text}<extra></extra>",
    }
    caption = "Right of the dotted line the second study is faster; open circles are ties."
    return Chart("ratio", "Ratio", caption, [trace], layout, height_px)


FORMS: Mapping[str, Callable[[Comparison], str]] = {
    "text": text,
    "markdown": markdown,
    "csv": csv_text,
    "json": json_text,
    "html": html,
}


def _header(made: Comparison) -> list[str]:
    return ["configuration", "figure", made.first, made.second, "ratio", "verdict"]


def _cells(item: ComparedConfiguration) -> list[str]:
    return [
        short_title(item.configuration),
        item.basis or MISSING,
        str(plus_minus(item.first)),
        str(plus_minus(item.second)),
        str(times(item.ratio)),
        item.verdict,
    ]


def _ends(ratio: Estimate | None) -> list[float | None]:
    return [None, None, None] if ratio is None else [ratio.mean, ratio.low, ratio.high]


def _remarks(made: Comparison) -> list[str]:
    alone = [
        f"only {name} has measured: {'; '.join(short_title(item) for item in items)}"
        for name, items in ((made.first, made.only_first), (made.second, made.only_second))
        if items
    ]
    return [*made.notes, *alone]


def _changes(made: Comparison) -> list[tuple[str, object, object]]:
    return [(path, one, other) for path, (one, other) in made.changed.items()]


def _told(value: object) -> str:
    return MISSING if value in (None, "") else str(value)


def _table(made: Comparison) -> Html | None:
    if not made.configurations:
        return None
    head = tag("thead", tag("tr", *(tag("th", cell, scope="col") for cell in _header(made))))
    rows = []
    for item in made.configurations:
        name, *cells = _cells(item)
        rows.append(tag("tr", tag("th", name, scope="row"), *(tag("td", cell) for cell in cells)))
    table = tag("table", head, tag("tbody", *rows))
    hint = tag("p", HOW_TO_READ, class_="hint")
    return tag("section", tag("h2", "Every configuration"), hint,
               scroll(table, "Every configuration"), class_="card", id="table")  # fmt: skip


def _list(heading: str, items: Sequence[str]) -> Html | None:
    if not items:
        return None
    entries = tag("ul", *(tag("li", item) for item in items))
    return tag("section", tag("h2", heading), entries, class_="card")


def _changes_table(made: Comparison) -> Html | None:
    if not made.changed:
        return None
    titles = ("what", made.first, made.second)
    head = tag("thead", tag("tr", *(tag("th", cell, scope="col") for cell in titles)))
    rows = [
        tag("tr", tag("th", path, scope="row"), tag("td", _told(one)), tag("td", _told(other)))
        for path, one, other in _changes(made)
    ]
    words = tag("summary", "What else has changed ", tag("span", str(len(rows)), class_="hint"))
    table = scroll(tag("table", head, tag("tbody", *rows), class_="tree"), "What has changed")
    return tag("details", words, tag("div", table, class_="fold"))
