"""The files of a study: whatever the ranks wrote, there is a report, and it says what is so."""

from __future__ import annotations

import csv
import io
import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from paceline.events import Iteration, MalformedEvent, parse_event
from tests.fakes.studies import DEFAULT, FullDisk, MadeStudy, line_of, make_study, rank_lines

FORMS = ("text", "markdown", "csv", "json", "html")
OWN: dict[str, Any] = {"name": "made", "job": {"script": "train.py"}, "study": {"warmup": 1}}


def _own(**study: object) -> dict[str, Any]:
    return {**OWN, "study": {"warmup": 1, **study}}


def _measured(made: MadeStudy, **more: Any) -> MadeStudy:
    """Give every planned sample a run that counts."""
    for planned in made.plan.samples:
        size = planned.configuration.world_size
        made.add(planned, {rank: rank_lines(rank, size, **more) for rank in range(size)})
    return made


def test_a_complete_study_leaves_all_its_files(tmp_path: Path) -> None:
    """Page, document, table and the files of old habit are there, and nothing troubles."""
    made = _measured(make_study(tmp_path, procs=(1, 2)))
    outcome = made.publisher.finish(made.records)
    assert outcome.trouble is None
    assert outcome.report_path == made.study.folder / "report.html"
    assert outcome.report_path.read_bytes().startswith(b"<!doctype html>")
    assert (made.study.folder / "study.json").read_text() == outcome.document
    assert (made.study.folder / "samples.csv").is_file()
    assert (made.study.folder / "nnode-1_nproc-2_batch_size-16.csv").is_file()


@pytest.mark.parametrize("name", ["report.html", "study.json"])
def test_a_full_disk_does_not_hide_the_findings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The outcome has its text and its document, no page, and says what was in the way."""
    monkeypatch.setattr(FullDisk, "no_room_for", (name,))
    made = _measured(make_study(tmp_path, kind=FullDisk))
    outcome = made.publisher.finish(made.records)
    assert outcome.report_path is None
    assert outcome.trouble == f"the disk is full: {name} (free some space)"
    assert "32" in outcome.text
    assert json.loads(outcome.document)["complete"] is True
    assert (made.study.folder / "study.json").exists() == (name == "report.html")


def test_samples_are_numbered_as_they_are_planned(tmp_path: Path) -> None:
    """The first sample is sample 1 in every form, the failed one's name included."""
    made = make_study(tmp_path, samples=2)
    made.add(made.plan.samples[0], {0: rank_lines(0)})
    made.add(made.plan.samples[1], {0: ["garbage"]})
    text = made.publisher.render(made.records, "text")
    assert "1 x 1, batch 16, sample 2 (" in text
    assert "sample 3" not in made.publisher.render(made.records, "html")
    rows = csv.DictReader(io.StringIO(made.publisher.render(made.records, "csv")))
    assert [row["sample"] for row in rows] == ["1", "2"]


def test_a_diverged_loss_is_an_empty_cell(tmp_path: Path) -> None:
    """NaN and infinity are missing in the table as they are in the document."""
    made = make_study(tmp_path)
    metrics = {"loss": float("nan"), "grad": float("inf"), "d": 0.5}
    odd = line_of(Iteration(rank=0, t=9.0, index=5, seconds=0.5, items=16, metrics=metrics))
    lines = rank_lines(0)
    made.add(made.plan.samples[0], {0: [*lines[:-1], odd, lines[-1]]})
    (row,) = csv.DictReader(io.StringIO(made.publisher.render(made.records, "csv")))
    assert (row["metric.loss"], row["metric.grad"], row["metric.d"]) == ("", "", "0.5")
    document = json.loads(made.publisher.render(made.records, "json"))
    (rank,) = document["configurations"][0]["samples"][0]["ranks"]
    assert rank["metrics"] == {"loss": None, "grad": None, "d": 0.5}


def test_data_are_those_that_the_ranks_name(tmp_path: Path) -> None:
    """A built-in trainer's data are its own word, else the spec's."""
    silent = _measured(make_study(tmp_path / "a"))
    assert silent.publisher.findings(silent.records).data == "fake"
    told = _measured(make_study(tmp_path / "b"), source="generated images")
    assert told.publisher.findings(told.records).data == "generated images"


def test_a_script_of_ones_own_trains_on_what_it_says(tmp_path: Path) -> None:
    """The spec's data say nothing about a script that does not read them."""
    silent = _measured(make_study(tmp_path / "a", OWN))
    assert silent.publisher.findings(silent.records).data == ""
    assert "fake" not in silent.publisher.render(silent.records, "text")
    told = _measured(make_study(tmp_path / "b", OWN), source="my rows")
    assert told.publisher.findings(told.records).data == "my rows"


def test_what_was_measured_is_what_the_ranks_did(tmp_path: Path) -> None:
    """A script that does not heed the number of iterations is not said to have done so."""
    made = _measured(make_study(tmp_path, _own(iterations=30)), iterations=7)
    found = made.publisher.findings(made.records)
    assert found.measured == "6 iterations after 1 of warm-up"
    assert found.notes == (
        "30 iterations were to be measured, and the ranks reported 6: 1 of 1 samples",
    )


def test_nothing_differs_where_the_plan_was_kept(tmp_path: Path) -> None:
    """A sample as planned has no note."""
    made = _measured(make_study(tmp_path, DEFAULT))
    found = made.publisher.findings(made.records)
    assert (found.measured, found.notes) == ("4 iterations after 1 of warm-up", ())
    assert (
        made.publisher.summarise([], None).measured == "planned: 5 iterations, the first 1 left out"
    )


def test_changed_surroundings_are_noted(tmp_path: Path) -> None:
    """Runs that count on another machine than others make a note; failed ones do not."""
    made = make_study(tmp_path, samples=3)
    for index, planned in enumerate(made.plan.samples):
        facts = {"hostname": f"host-{index}", "torch_version": "2.4", "cores": 2}
        lines = rank_lines(0) if index < 2 else ["garbage"]
        made.add(planned, {0: lines}, provenance={"hosts": {"localhost": facts}})
    assert made.publisher.findings(made.records).notes == (
        "samples were taken on different hosts: host-0, host-1",
    )


_lines = st.sampled_from([*rank_lines(0), *rank_lines(0, ends=False, epoch=True)[-1:], "", "{"])
_cut = st.builds(lambda line, at: line[:at].encode(), _lines, st.integers(0, 60))
_numbers = st.floats() | st.integers() | st.sampled_from([10**400, 1e-320, 1e308, -1])
_odd = st.builds(
    lambda seconds, items, value: json.dumps(
        {
            "kind": "iteration",
            "rank": 0,
            "t": 1.0,
            "seconds": seconds,
            "items": items,
            "metrics": {"loss": value},
        }
    ).encode(),
    _numbers,
    _numbers,
    _numbers,
)
_bytes = st.one_of(
    st.binary(max_size=200),
    st.lists(st.one_of(_lines.map(str.encode), _cut, _odd), max_size=8).map(b"\n".join),
)


def _is_readable(content: bytes) -> bool:
    try:
        for line in content.decode(errors="replace").split("\n"):
            if line.strip():
                parse_event(line)
    except MalformedEvent:
        return False
    return True


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(_bytes)
def test_any_bytes_in_an_event_file_give_a_report(content: bytes) -> None:
    """Each form is made, and a sample with a line that is no event never counts."""
    with tempfile.TemporaryDirectory() as folder:
        made = make_study(Path(folder), OWN, procs=(1, 2))
        made.add(made.plan.samples[0], {0: rank_lines(0)})
        made.add(made.plan.samples[1], {0: content, 1: rank_lines(1, 2)})
        alone = make_study(Path(folder) / "alone", OWN)
        alone.add(alone.plan.samples[0], {0: content})
        for study in (made, alone):
            for form in FORMS:
                assert study.publisher.render(study.records, form)
            assert study.publisher.finish(study.records).trouble is None
            *_, sample = study.publisher.read_samples(study.records)
            assert sample.failed is not None or _is_readable(content)
