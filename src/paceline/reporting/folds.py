"""The parts of the HTML report that are folded away until somebody asks."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone

from paceline.model.summary import Sample, StudySummary
from paceline.reporting.details import details_table
from paceline.reporting.markup import Html, join, tag
from paceline.reporting.numbers import MISSING, plain
from paceline.reporting.sections import scroll
from paceline.reporting.table import iteration_unit, short_title

_MEANINGS: Mapping[str, str] = {
    "throughput": """
        The {unit} of all processes together, over the time of the slowest one. The first
        iterations of a run, its warm-up, are left out; the last, partial batch counts with its
        own size.""",
    "time per iteration": """
        The mean over processes and iterations; warm-up and partial batches are left out.""",
    "speedup": """
        Throughput over the baseline's. Where there is no throughput, the times of whole epochs
        are compared; where there are none either, the wall times of runs, which supposes that
        all of them did the same work.""",
    "efficiency": """
        Speedup over the growth in the number of processes: at 100%, every process does as much
        as one of the baseline's.""",
    "n and intervals": """
        n counts runs, not iterations: iterations of one run resemble each other more than those
        of two runs. The interval of a mean is Student's t at 95%. That of a ratio adds the
        relative variances of both sides on the log scale, with Welch's degrees of freedom.""",
    "a new run": """
        Where one more run would lie, with 95%. It follows from the spread between runs, and is
        wider than the interval of the mean, which says how well the average is known.""",
    "serial fraction": """
        After Karp and Flatt: the part of the work that would have to be serial to explain the
        speedup. If it grows with the processes, communication is what costs.""",
    "where the time goes": """
        Ranks report how long they waited for the network and for their input; the rest of an
        iteration is compute. Input counts only as far as training waited for it.""",
    "cost per epoch": """
        Time of an epoch x hosts x price of a host. Where epochs were not measured whole, their
        time is the mean iteration x the iterations of an epoch.""",
    "ties, outliers, bursts": """
        Two configurations tie if the 95% interval of their ratio includes 1. An outlier is a run
        that Grubbs' test at 1% sets apart; a burst is three or more iterations in a row above
        1.15 times the median; a straggler is a rank that is busy 1.15 times as long as the
        others. They are named, and stay in every figure.""",
    "failed samples": """
        They are listed with their reason and enter no figure.""",
}


def details(summary: StudySummary) -> Html | None:
    """Return every figure in full, folded."""
    table = details_table(summary)
    if table is None:
        return None
    hint = "n, mean, median, spread, and 95% intervals of the mean and of a new run"
    return _fold("Every figure in full", hint, scroll(table, "Every figure in full"))


def samples(summary: StudySummary) -> Html | None:
    """Return every sample, the failed ones too, folded."""
    rows = [
        _sample_row(sample, summary) for item in summary.configurations for sample in item.samples
    ]
    if not rows:
        return None
    unit = iteration_unit(summary)
    titles = [
        *("configuration", "sample", "run", "started (UTC)", "wall s"),
        *(f"{summary.unit}/s", f"{unit.name}/iteration", "s/epoch", "outcome"),
    ]
    head = tag("thead", tag("tr", *(tag("th", title, scope="col") for title in titles)))
    table = tag("table", head, tag("tbody", *rows), class_="raw")
    hint = f"{len(rows)}, with their raw figures"
    return _fold("Every sample", hint, scroll(table, "Every sample"))


def _sample_row(sample: Sample, summary: StudySummary) -> Html:
    unit = iteration_unit(summary)
    iteration = None if sample.iteration_s is None else sample.iteration_s * unit.per_second
    cells = [
        str(sample.index),
        sample.run_id,
        _moment(sample.started_at),
        plain(sample.wall_s),
        plain(sample.items_per_s),
        plain(iteration),
        plain(sample.epoch_s),
    ]
    outcome = tag("span", "failed", class_="warn") if sample.failed else Html("ok")
    return tag(
        "tr",
        tag("th", short_title(sample.configuration), scope="row"),
        *(tag("td", cell) for cell in cells),
        tag("td", outcome),
    )


def method(summary: StudySummary) -> Html:
    """Return what the figures mean, in plain words, folded."""
    meanings = [
        join([tag("dt", name), tag("dd", meaning.format(unit=summary.unit))])
        for name, meaning in _MEANINGS.items()
    ]
    return _fold("How to read these figures", None, tag("dl", *meanings, class_="meanings"))


def provenance(summary: StudySummary) -> Html | None:
    """Return where the figures come from: machines, versions, settings, folded."""
    if not summary.provenance:
        return None
    hint = "machines, versions and settings"
    return _fold("Provenance", hint, tag("div", _tree(summary.provenance), class_="scroll"))


def _fold(title: str, hint: str | None, content: Html) -> Html:
    words = tag("span", hint, class_="hint") if hint else None
    return tag("details", tag("summary", f"{title} ", words), tag("div", content, class_="fold"))


def _tree(value: object) -> Html:
    """Return nested plain data as nested tables, and anything else as text."""
    if isinstance(value, (Mapping, list, tuple, set, frozenset)) and not value:
        return Html(MISSING)
    if isinstance(value, Mapping):
        rows = [
            tag("tr", tag("th", str(key), scope="row"), tag("td", _tree(item)))
            for key, item in value.items()
        ]
        return tag("table", tag("tbody", *rows), class_="tree")
    if isinstance(value, (list, tuple, set, frozenset)):
        return join([_tree(item) for item in value], Html("<br>"))
    if isinstance(value, bool):
        return Html("yes" if value else "no")
    return join([MISSING if value is None else str(value)])


def _moment(unix_s: float | None) -> str:
    if unix_s is None:
        return MISSING
    return f"{datetime.fromtimestamp(unix_s, tz=timezone.utc):%Y-%m-%d %H:%M:%S}"
