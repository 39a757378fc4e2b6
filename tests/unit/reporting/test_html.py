"""The HTML report: complete in itself, escaped, bearing whatever is missing."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from paceline.errors import PacelineError
from paceline.model.summary import StudySummary
from paceline.reporting.html import ReportPicture, render
from paceline.reporting.markup import Html, join, json_script, tag
from paceline.reporting.sections import question, split_answer

VOID = {"meta", "img", "br", "hr"}
EVIL = "</script><img src=x onerror=alert(1)>\"'&"


class _Page(HTMLParser):
    """The elements of a page with their attributes; fails where they are not nested well."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element."""
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """Check that the innermost element is the one that ends."""
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Note text that is neither script nor style."""
        if self._open and self._open[-1] not in ("script", "style"):
            self.texts.append(data)

    def named(self, tag: str) -> list[dict[str, str | None]]:
        """Return the attributes of all elements of a name."""
        return [attributes for name, attributes in self.elements if name == tag]


def _page(summary: StudySummary, **more: object) -> _Page:
    return _Page(render(summary, **more).decode())  # type: ignore[arg-type]


def test_page_needs_nothing_else(study: StudySummary) -> None:
    """No element refers to another file or host, and the page forbids itself to ask for any."""
    page = _page(study, pictures=[ReportPicture("grid", b"\x89PNG")])
    assert page.named("link") == []
    assert page.named("iframe") == []
    assert all("src" not in script for script in page.named("script"))
    assert all((image["src"] or "").startswith("data:") for image in page.named("img"))
    assert all((link["href"] or "").startswith("#") for link in page.named("a"))
    policy = next(meta for meta in page.named("meta") if "http-equiv" in meta)["content"]
    assert policy is not None
    assert policy.startswith("default-src 'none';")


def test_answer_table_charts_and_folds_are_there(study: StudySummary) -> None:
    """A reader finds question, answer, every row, every chart's place and what is folded."""
    page = _page(study)
    text = " ".join(page.texts)
    assert "How much faster does training get with more processes?" in text
    assert "2 processes train 1.85 times as fast as 1" in text
    assert len([row for row in page.named("tr") if row.get("class") == "baseline"]) == 1
    names = [box["data-chart"] for box in page.named("div") if "data-chart" in box]
    assert names[:5] == ["throughput", "iteration", "speedup", "efficiency", "shares"]
    assert len(names) == 9
    assert len(page.named("details")) == 5
    assert "a new run, 95%" in text
    assert "weak scaling: each process keeps its batch" in text
    assert "killed by signal 9" in text
    assert "AMD EPYC 7R13, 2 cores" in text


def test_a_chart_without_a_partner_has_a_row_alone(study: StudySummary) -> None:
    """Two charts of figures stand side by side; a third takes the whole width."""
    times = tuple(replace(item, epoch_s=item.wall_s) for item in study.configurations)
    wide = [
        [box.get("class") for box in _page(one).named("figure")].count("card wide")
        for one in (study, replace(study, configurations=times))
    ]
    assert wide == [1, 2]  # the stacked bars always have one


def test_names_are_text_wherever_they_stand(study: StudySummary) -> None:
    """Hostile names in every place that a user fills make no element and no attribute."""
    plain = [name for name, _ in _page(study).elements]
    item = study.configurations[3]
    samples = tuple(
        replace(one, failed=one.failed and EVIL, run_id=EVIL, notes=(EVIL,)) for one in item.samples
    )
    odd = replace(
        study,
        name=EVIL,
        headline=f"{EVIL}. {EVIL}",
        unit=EVIL,
        data=EVIL,
        notes=(EVIL, EVIL),
        configurations=(*study.configurations[:3], replace(item, samples=samples)),
        provenance={EVIL: {EVIL: [EVIL, None]}},
    )
    page = _page(odd)
    assert [one for one in page.named("img") if "onerror" in one] == []
    assert {name for name, _ in page.elements} <= {*plain, "br"}
    assert any(EVIL in text for text in page.texts)


def test_figures_can_be_read_back(study: StudySummary) -> None:
    """The data for the page's script is one valid JSON object per chart."""
    page = render(replace(study, name=EVIL)).decode()
    found = re.search(
        r'<script type="application/json" id="figures">(.*?)</script>', page, re.DOTALL
    )
    assert found is not None
    figures = json.loads(found.group(1))
    assert set(figures["throughput"]) == {"data", "layout"}


def test_charts_and_folds_have_words(study: StudySummary) -> None:
    """Whoever cannot see a chart is told what it shows and where its figures are."""
    for box in _page(study).named("div"):
        if "data-chart" in box:
            assert box["role"] == "img"
            assert "figures are in the table" in (box["aria-label"] or "")


def test_scrolling_tables_are_reachable_by_keyboard(study: StudySummary) -> None:
    """A region that scrolls can take the focus and has a name."""
    regions = [box for box in _page(study).named("div") if box.get("role") == "region"]
    assert regions
    assert all(box["tabindex"] == "0" and box["aria-label"] for box in regions)


def test_studies_with_little_to_show(variant: StudySummary) -> None:
    """Whatever is missing, the page is whole and gives the answer that there is."""
    answer, _ = split_answer(variant.headline)
    assert answer in _page(variant).texts


def test_pictures_travel_inside(study: StudySummary) -> None:
    """A picture is in the page with its title for those who do not see it."""
    page = _page(study, pictures=[ReportPicture("epoch <1>", b"GIF8", "image/gif")])
    assert page.named("img") == [{"src": "data:image/gif;base64,R0lGOA==", "alt": "epoch <1>"}]


def test_pictures_that_could_be_programs_are_refused(study: StudySummary) -> None:
    """SVG can carry scripts; the refusal names the picture and what may be given."""
    with pytest.raises(PacelineError, match="image/svg") as caught:
        render(study, pictures=[ReportPicture("x", b"<svg/>", "image/svg+xml")])
    assert "image/png" in (caught.value.hint or "")


def test_question_follows_from_what_varies(
    study: StudySummary, cluster_study: StudySummary
) -> None:
    """Machines, processes, both or neither: the question names what the study varied."""
    assert question(cluster_study).endswith("more machines and processes?")
    assert question(study).endswith("more processes?")
    machines = tuple(
        item for item in cluster_study.configurations if item.configuration.procs_per_node == 1
    )
    assert question(replace(study, configurations=machines)).endswith("more machines?")
    assert question(replace(study, configurations=machines[:1])) == "How fast does it train?"


def test_markup_escapes_by_default() -> None:
    """Text is text, attributes are quoted, and only Html passes as it is."""
    made = tag("p", "<b>", Html("<i>x</i>"), None, class_='"x"', hidden=True, title=None)
    assert made == '<p class="&quot;x&quot;" hidden>&lt;b&gt;<i>x</i></p>'
    assert tag("img", src="a&b") == '<img src="a&amp;b">'
    assert join(["a<", Html("<br>")], " ") == "a&lt; <br>"
    assert "</script" not in json_script("x", EVIL)[:-9]
