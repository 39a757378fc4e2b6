"""The study as JSON, and back."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.errors import StorageError
from paceline.model.plan import Configuration
from paceline.model.summary import (
    ConfigurationSummary,
    Estimate,
    RankSample,
    Sample,
    StudySummary,
)
from paceline.reporting.document import SCHEMA_VERSION, dumps, loads, to_document

DATA = Path(__file__).parents[2] / "data"


def test_a_study_comes_back_as_it_was(study: StudySummary) -> None:
    """Writing and reading loses nothing: raw times, failures, provenance, intervals."""
    assert loads(dumps(study)) == study


def test_studies_with_little_to_show_come_back(variant: StudySummary) -> None:
    """What is missing stays missing."""
    assert loads(dumps(variant)) == variant


def test_the_example_in_the_data_folder_is_this_study(study: StudySummary) -> None:
    """The example that the browser test reads is what the fixture makes up today."""
    assert loads((DATA / "synthetic-study.json").read_text()) == study


def test_document_is_versioned_and_self_explaining(study: StudySummary) -> None:
    """A reader finds the schema, and each configuration's label and title beside its numbers."""
    document = to_document(study)
    assert (document["schema"], document["schema_version"]) == ("paceline.study", SCHEMA_VERSION)
    first = document["configurations"][0]["configuration"]
    assert first["label"] == "nnode-1_nproc-1_batch_size-16"
    assert first["title"] == "1 node x 1 process, batch 16"
    assert document["complete"] is False


def test_series_stand_on_one_line(study: StudySummary) -> None:
    """Twenty iterations do not make twenty lines: a person can scroll through the document."""
    lines = [line for line in dumps(study).splitlines() if '"iteration_s": [' in line]
    assert len(lines) == 18
    assert all(line.endswith("],") for line in lines)


def test_missing_is_null_and_never_nan(study: StudySummary) -> None:
    """JSON has no NaN: what is not finite is written as null, and every parser can read it."""
    rank = RankSample(0, "h", metrics={"loss": float("nan"), "fid": float("inf"), "ok": 1.0})
    sample = replace(study.configurations[0].samples[0], ranks=(rank,), epoch_s=None)
    item = replace(study.configurations[0], samples=(sample,))
    text = dumps(replace(study, configurations=(item,)))
    data = json.loads(text, parse_constant=pytest.fail)
    written = data["configurations"][0]["samples"][0]
    assert written["epoch_s"] is None
    assert written["ranks"][0]["metrics"] == {"loss": None, "fid": None, "ok": 1.0}
    assert loads(text).configurations[0].samples[0].ranks[0].metrics == {"ok": 1.0}


def test_unknown_keys_are_passed_over_and_absent_ones_have_defaults(study: StudySummary) -> None:
    """A document with more, or from before a field existed, is still readable."""
    document = json.loads(dumps(study))
    document["tomorrow"] = 1
    document["configurations"][0]["samples"][0]["tomorrow"] = 1
    del document["configurations"][0]["samples"][0]["metrics"]
    del document["configurations"][0]["cost_per_epoch_usd"]
    assert loads(json.dumps(document)) == study


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("not json", "not a study document"),
        ("[]", "its schema is not"),
        ('{"schema": "something.else"}', "its schema is not"),
        ('{"schema": "paceline.study", "schema_version": 99}', "schema version 99"),
        ('{"schema": "paceline.study"}', "schema version None"),
        ('{"schema": "paceline.study", "schema_version": 1}', "is broken: KeyError"),
        (
            '{"schema": "paceline.study", "schema_version": 1, "configurations": [{}]}',
            "is broken",
        ),
    ],
)
def test_what_is_not_a_study_is_named(text: str, words: str) -> None:
    """Every wrong document is a StorageError with advice, not a traceback."""
    with pytest.raises(StorageError, match=words) as caught:
        loads(text)
    assert caught.value.hint


_names = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
_finite = st.floats(allow_nan=False, allow_infinity=False)
_maybe = st.none() | _finite
_estimates = st.none() | st.builds(
    Estimate, st.integers(1, 9), _finite, _finite, _maybe, _maybe, _maybe
)
_args = st.dictionaries(_names, _names | st.integers() | _finite | st.booleans(), max_size=3).map(
    lambda pairs: tuple(pairs.items())
)
_configurations = st.builds(
    Configuration, st.integers(1, 8), st.integers(1, 8), st.none() | st.integers(1, 512), _args
)
_series = st.lists(_finite, max_size=3).map(tuple)
_ranks = st.builds(
    RankSample,
    st.integers(0, 9),
    _names,
    _series,
    _series,
    _series,
    st.none() | st.integers(0),
    _maybe,
    _maybe,
    st.dictionaries(_names, _finite, max_size=2),
    _maybe,
    st.booleans(),
    st.lists(st.integers(0, 9), max_size=2).map(tuple),
)


@st.composite
def _studies(draw: st.DrawFn) -> StudySummary:
    items = []
    for configuration in draw(st.lists(_configurations, max_size=2)):
        samples = st.builds(
            Sample,
            _names,
            _names,
            st.just(configuration),
            st.integers(0, 9),
            _maybe,
            st.lists(_ranks, max_size=2).map(tuple),
            failed=st.none() | _names,
            notes=st.lists(_names, max_size=1).map(tuple),
        )
        items.append(
            ConfigurationSummary(
                configuration,
                is_baseline=draw(st.booleans()),
                planned=draw(st.integers(0, 5)),
                samples=tuple(draw(st.lists(samples, max_size=2))),
                speedup=draw(_estimates),
                wall_s=draw(_estimates),
                basis=draw(st.none() | st.just("throughput")),
            )
        )
    provenance = draw(st.dictionaries(_names, _names | st.none() | st.integers(), max_size=2))
    return StudySummary(
        draw(_names), draw(_names), "img", tuple(items), draw(_finite), "", "", (), provenance
    )


@settings(deadline=None)
@given(_studies())
def test_any_study_comes_back(made: StudySummary) -> None:
    """Whatever the names and numbers, what is written is what is read."""
    assert loads(dumps(made)) == made
