"""The parts of the HTML report that are words and tables."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone

from paceline.model.summary import ConfigurationSummary, StudySummary
from paceline.reporting.markup import Html, join, tag
from paceline.reporting.numbers import Figure, common_decimals, plus_minus
from paceline.reporting.table import (
    Column,
    Row,
    failures,
    remarks,
    short_title,
    study_table,
    subject,
)

CONFIDENCE = "95% interval"


def header(summary: StudySummary) -> Html:
    """Return the name, the question and the answer."""
    answer, rest = split_answer(summary.headline)
    about = [tag("strong", summary.name), subject(summary) or None, _day(summary.created_at)]
    return tag(
        "header",
        tag("p", join([part for part in about if part], Html(" &middot; ")), class_="eyebrow"),
        tag("h1", question(summary)),
        tag("p", answer, class_="answer"),
        tag("p", rest, class_="rest") if rest else None,
    )


def split_answer(headline: str) -> tuple[str, str]:
    """Return the first sentence, which is the answer, and what is to be said besides."""
    first, separator, rest = headline.partition(". ")
    return first + separator.strip(), rest


def question(summary: StudySummary) -> str:
    """Return what the study asks, by what it varies."""
    configurations = [item.configuration for item in summary.configurations]
    nodes = len({item.nodes for item in configurations}) > 1
    processes = len({item.procs_per_node for item in configurations}) > 1
    if nodes and processes:
        return "How much faster does training get with more machines and processes?"
    if nodes:
        return "How much faster does training get with more machines?"
    if processes:
        return "How much faster does training get with more processes?"
    return "How fast does it train?"


def facts(summary: StudySummary) -> Html:
    """Return the few figures that everybody asks for first."""
    rated = [item for item in summary.configurations if item.items_per_s is not None]
    tiles = [_rate_tile("Baseline", item, summary) for item in rated if item.is_baseline]
    others = [item for item in rated if not item.is_baseline]
    if others:
        best = max(others, key=lambda item: item.items_per_s.mean if item.items_per_s else 0.0)
        tiles.append(_rate_tile("Highest throughput", best, summary))
    return tag("dl", *tiles, _cost_tile(summary), _sample_tile(summary), class_="facts")


def _rate_tile(name: str, item: ConfigurationSummary, summary: StudySummary) -> Html:
    decimals = common_decimals(item.items_per_s for item in summary.configurations)
    figure = plus_minus(item.items_per_s, decimals=decimals)
    detail = [f"{figure.uncertainty} ({CONFIDENCE})"] if figure.uncertainty else []
    detail.append(short_title(item.configuration))
    return _tile(name, figure.value, f"{summary.unit}/s", "; ".join(detail))


def _cost_tile(summary: StudySummary) -> Html | None:
    """Return what the cheapest epoch costs, and the price behind it."""
    priced = [
        (one.mean, item, one)
        for item in summary.configurations
        if (one := item.cost_per_epoch_usd) is not None
    ]
    if not priced:
        return None
    _, item, cost = min(priced, key=lambda entry: entry[0])
    figure = plus_minus(cost)
    sources = dict.fromkeys(
        sample.price_source for sample in item.good if sample.price_source is not None
    )
    detail = [f"{figure.uncertainty} ({CONFIDENCE})"] if figure.uncertainty else []
    return _tile(
        "Cheapest epoch",
        figure.value,
        "USD",
        "; ".join([*detail, short_title(item.configuration), *sources]),
    )


def _sample_tile(summary: StudySummary) -> Html:
    good = sum(len(item.good) for item in summary.configurations)
    failed = sum(len(item.samples) for item in summary.configurations) - good
    planned = sum(item.planned for item in summary.configurations)
    detail = (
        tag("a", f"{failed} failed", href="#failed", class_="warn") if failed else "none failed"
    )
    return _tile("Samples that count", str(good), f"of {planned}", detail)


def _tile(name: str, value: str, unit: str, detail: Html | str) -> Html:
    figure = tag("span", value, class_="value")
    return tag(
        "div",
        tag("dt", name),
        tag("dd", figure, " ", tag("span", unit, class_="unit")),
        tag("dd", detail, class_="detail"),
    )


def failed_samples(summary: StudySummary) -> Html | None:
    """Return what failed, each with its reason."""
    entries = [
        tag("li", tag("span", name, class_="warn"), f": {reason}")
        for name, reason in failures(summary)
    ]
    if not entries:
        return None
    hint = tag("p", "They are records, not gaps: none of them enters a figure.", class_="hint")
    return tag(
        "section",
        tag("h2", "Failed samples"),
        hint,
        tag("ul", *entries),
        class_="card notice",
        id="failed",
    )


def remarks_section(summary: StudySummary) -> Html | None:
    """Return what else to keep in mind while reading the figures."""
    notes = [tag("li", remark) for remark in remarks(summary)]
    return tag("section", tag("h2", "Remarks"), tag("ul", *notes), class_="card") if notes else None


def table_section(summary: StudySummary) -> Html:
    """Return the study's table; on a narrow screen each row becomes a block of its own."""
    made = study_table(summary)
    head = tag(
        "tr",
        *(
            tag("th", column.title, scope="col", title=column.meaning, class_=_class(column))
            for column in made.columns
        ),
    )
    return tag(
        "section",
        tag("h2", "Every configuration"),
        tag("p", "± and ranges are 95% intervals of the mean over n samples.", class_="hint"),
        scroll(
            tag(
                "table",
                tag("thead", head),
                tag("tbody", *(_row(row, made.columns) for row in made.rows)),
                class_="study",
            ),
            "Every configuration",
        ),
        class_="card",
        id="table",
    )


def _row(row: Row, columns: Sequence[Column]) -> Html:
    cells = []
    for index, (column, figure) in enumerate(zip(columns, row.cells, strict=True)):
        shown = _figure(figure)
        if index == 0:
            mark = tag("span", "baseline", class_="tag") if row.item.is_baseline else None
            inner = tag("span", shown, mark)
            cells.append(tag("th", inner, scope="row", data_label=column.title))
        else:
            cell = tag("span", shown)
            cells.append(tag("td", cell, class_=_class(column), data_label=column.title))
    return tag("tr", *cells, class_="baseline" if row.item.is_baseline else None)


def _figure(figure: Figure) -> Html:
    value = tag("span", figure.value, class_="value")
    if not figure.uncertainty or figure.uncertainty == "(baseline)":
        return value
    return join([value, tag("span", figure.uncertainty, class_="with")], " ")


def _class(column: Column) -> str | None:
    return "number" if column.is_number else None


def scroll(table: Html, name: str) -> Html:
    """Return a table that scrolls by itself, reachable by keyboard."""
    return tag("div", table, class_="scroll", tabindex=0, role="region", aria_label=name)


def _day(unix_s: float) -> str:
    return f"{datetime.fromtimestamp(unix_s, tz=timezone.utc):%d %B %Y}".lstrip("0")
