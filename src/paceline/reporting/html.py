"""A study as one HTML file that needs nothing else: no network, no other file, no server.

The page forbids itself every request by its content security policy. Charts are drawn by
plotly, which travels inside the file; everything that they show stands in the tables as well.
"""

from __future__ import annotations

import base64
import string
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources

from paceline.errors import PacelineError
from paceline.model.summary import StudySummary
from paceline.reporting.bars import cost_chart, iteration_chart, throughput_chart, time_chart
from paceline.reporting.chart import Chart
from paceline.reporting.folds import details, method, provenance, samples
from paceline.reporting.lines import efficiency_chart, speedup_chart
from paceline.reporting.markup import Html, join, json_script, tag
from paceline.reporting.palette import css_variables, dark, light
from paceline.reporting.plane import plane_chart
from paceline.reporting.sections import (
    facts,
    failed_samples,
    header,
    remarks_section,
    table_section,
)
from paceline.reporting.shares import shares_chart
from paceline.reporting.timeline import timeline_charts

# What stands together: measured figures first, then comparisons, then what explains them.
_GROUPS = {"speedup": 1, "efficiency": 1, "shares": 2, "plane": 2}
_WIDE = frozenset({"shares", "plane"})
_PICTURE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})


@dataclass(frozen=True)
class ReportPicture:
    """A picture that a run made: what it shows, its media type, and its bytes."""

    title: str
    data: bytes
    media_type: str = "image/png"


def render(summary: StudySummary, *, pictures: Sequence[ReportPicture] = ()) -> bytes:
    """Return the report's file."""
    charts = study_charts(summary)
    timelines = timeline_charts(summary)
    body = join(
        [
            tag("a", "Skip to the table", class_="skip", href="#table"),
            tag(
                "main",
                header(summary),
                facts(summary),
                table_section(summary),
                _charts(charts),
                failed_samples(summary),
                remarks_section(summary),
                _pictures(pictures),
                _timelines(timelines),
                details(summary),
                samples(summary),
                method(summary),
                provenance(summary),
                tag("footer", "Made by Paceline. This file is complete: it loads nothing."),
            ),
        ],
        "\n",
    )
    return page(summary.name, body, [*charts, *timelines]).encode("utf-8", "replace")


def study_charts(summary: StudySummary) -> tuple[Chart, ...]:
    """Return the charts that this study has something to show in."""
    makers = (
        *(throughput_chart, iteration_chart, time_chart, cost_chart),
        *(speedup_chart, efficiency_chart, shares_chart, plane_chart),
    )
    charts = (make(summary) for make in makers)
    return tuple(chart for chart in charts if chart is not None)


def page(name: str, body: Html, charts: Sequence[Chart]) -> str:
    """Return a whole page around its body, with all that its charts need."""
    # Heavy, and only a report needs it; plotly has no types.
    from plotly.offline import get_plotlyjs  # type: ignore[import-untyped]  # noqa: PLC0415

    figures = {chart.name: chart.figure() for chart in charts}
    palettes = {"light": light(), "dark": dark()}
    return string.Template(_template("report.html")).substitute(
        title=tag("title", f"{name} - how training scales"),
        light=css_variables(palettes["light"]),
        dark=css_variables(palettes["dark"]),
        css=_template("report.css"),
        body=body,
        data=join([json_script("figures", figures), json_script("palettes", palettes)], "\n"),
        plotly=get_plotlyjs(),
        js=_template("report.js"),
    )


def _template(name: str) -> str:
    return (resources.files("paceline.reporting") / "templates" / name).read_text("utf-8")


def _charts(charts: Sequence[Chart]) -> Html | None:
    if not charts:
        return None
    # They stand in pairs, comparisons with comparisons: one that is left over has a row alone.
    groups = [
        [chart for chart in charts if _GROUPS.get(chart.name, 0) == place] for place in (0, 1, 2)
    ]
    alone = {group[-1].name for group in groups if len(group) % 2} | _WIDE
    figures = [
        figure(chart, "card wide" if chart.name in alone else "card")
        for group in groups
        for chart in group
    ]
    return tag("div", *figures, class_="charts")


def figure(chart: Chart, class_: str | None = None) -> Html:
    """Return the place where the page's script draws; its height is kept free before that."""
    heading = tag("h2" if class_ else "h3", chart.title)
    caption = tag("figcaption", heading, tag("p", chart.caption, class_="hint"))
    canvas = tag(
        "div",
        tag("noscript", "Charts need JavaScript; their figures are in the table."),
        class_="chart",
        data_chart=chart.name,
        role="img",
        aria_label=f"{chart.title}: {chart.caption} The figures are in the table.",
        style=f"min-height:{chart.height_px}px",
    )
    return tag("figure", caption, canvas, class_=class_)


def _timelines(charts: Sequence[Chart]) -> Html | None:
    if not charts:
        return None
    hint = tag("span", "every iteration of every rank", class_="hint")
    return tag(
        "details",
        tag("summary", "Timelines ", hint),
        tag("div", *(figure(chart) for chart in charts), class_="fold"),
        id="timelines",
    )


def _pictures(pictures: Sequence[ReportPicture]) -> Html | None:
    if not pictures:
        return None
    figures = [
        tag(
            "figure",
            tag("img", src=_data_uri(picture), alt=picture.title),
            tag("figcaption", picture.title),
        )
        for picture in pictures
    ]
    return tag(
        "section",
        tag("h2", "Pictures"),
        tag("p", "What the runs made, as they made it.", class_="hint"),
        tag("div", *figures, class_="pictures"),
        class_="card",
    )


def _data_uri(picture: ReportPicture) -> str:
    if picture.media_type not in _PICTURE_TYPES:
        raise PacelineError(
            f"a report cannot show pictures of type {picture.media_type!r} ({picture.title})",
            hint=f"Give one of: {', '.join(sorted(_PICTURE_TYPES))}.",
        )
    return f"data:{picture.media_type};base64,{base64.b64encode(picture.data).decode('ascii')}"
