"""What ranks say and how it is read: nothing disturbs a training, nothing surprises a reader."""

from __future__ import annotations

import errno
import json
import math
import os
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.events import (
    EVENTS_VARIABLE,
    End,
    Epoch,
    Event,
    Iteration,
    MalformedEvent,
    Metric,
    Note,
    Place,
    Reporter,
    Start,
    parse_event,
    parse_events,
)


class Awkward:
    """A value whose every use fails, as those of a broken library may."""

    def __int__(self) -> int:
        raise RuntimeError("device-side assert")

    __float__ = __str__ = __index__ = __int__  # type: ignore[assignment]


class Whole:
    """A number of another library: no JSON, but equal to 16."""

    def __int__(self) -> int:
        return 16

    def __eq__(self, other: object) -> bool:
        return other == 16

    def __hash__(self) -> int:
        return 16


def _told(folder: Path) -> list[Event]:
    return list(parse_events((folder / "rank-0.jsonl").read_text().split("\n")))


def _only(folder: Path, kind: type[Event]) -> list[Any]:
    return [event for event in _told(folder) if isinstance(event, kind)]


def test_what_is_told_is_what_is_read(tmp_path: Path) -> None:
    """Each kind of event comes back with its values; what was not given is None."""
    with Reporter(str(tmp_path), place=Place(), info={"torch": "2.4"}) as progress:
        progress.iteration(0, of=9, seconds=0.5, items=4, metrics={"loss": 0.25})
        progress.iteration(0, seconds=0.25, data_s=0.125)
        progress.epoch(0, seconds=0.75)
        progress.metric("fid", math.nan)
        progress.checkpoint("a.pt", epoch=0, index=1, seconds=0.5)
        progress.picture("a.png", what="grid")
        progress.note("hello")
    start, first, second, epoch, metric, *_, end = _told(tmp_path)
    assert isinstance(start, Start)
    assert start.info == {"torch": "2.4"}
    assert isinstance(first, Iteration)
    assert (first.index, first.of, first.items, first.wait_s) == (0, 9, 4, None)
    assert first.metrics == {"loss": 0.25}
    assert isinstance(second, Iteration)
    assert (second.index, second.seconds, second.items, second.data_s) == (1, 0.25, None, 0.125)
    assert isinstance(epoch, Epoch)
    assert (epoch.seconds, epoch.iterations, epoch.items) == (0.75, 2, 4)
    assert isinstance(metric, Metric)
    assert math.isnan(metric.value)
    assert isinstance(end, End)
    assert end.status == "ok"
    assert len(_told(tmp_path)) == 9


@pytest.mark.parametrize("items", [16, 16.0, Fraction(16), Whole(), True])
def test_whatever_has_a_whole_value_is_taken(tmp_path: Path, items: Any) -> None:
    """Fractions and the integers of other libraries become JSON numbers."""
    progress = Reporter(str(tmp_path), place=Place())
    progress.iteration(items, items, items=items, of=items)
    progress.end()
    (told,) = _only(tmp_path, Iteration)
    assert {told.epoch, told.index, told.items, told.of} == {int(items)}


@pytest.mark.torch
def test_tensors_are_taken(tmp_path: Path) -> None:
    """A tensor with one element is a number everywhere; one with more is none."""
    torch = pytest.importorskip("torch")
    with Reporter(str(tmp_path), place=Place(), info={"dtype": torch.float32}) as progress:
        progress.iteration(
            torch.tensor(1),
            torch.tensor([2]),
            items=torch.tensor(16),
            seconds=torch.tensor(0.5),
            metrics={"loss": torch.tensor(0.25, requires_grad=True)},
        )
        progress.iteration(0, items=torch.ones(2))
    (told,) = _only(tmp_path, Iteration)
    assert (told.epoch, told.index, told.items, told.seconds) == (1, 2, 16, 0.5)
    assert told.metrics == {"loss": 0.25}
    assert _only(tmp_path, Start)[0].info == {"dtype": "torch.float32"}


WRONG: list[dict[str, Any]] = [
    {"items": "many"},
    {"items": 1.5},
    {"items": -1},
    {"items": 10**30},
    {"items": Awkward()},
    {"seconds": math.nan},
    {"seconds": -1.0},
    {"seconds": math.inf},
    {"seconds": "abc"},
    {"data_s": []},
    {"metrics": [1.0]},
    {"metrics": {"loss": None}},
    {"metrics": {"loss": Awkward()}},
    {"metrics": {Awkward(): 1.0}},
    {"of": object()},
    {"index": "first"},
]


@pytest.mark.parametrize("wrong", WRONG, ids=range(len(WRONG)))
def test_a_wrong_value_never_reaches_the_training(
    tmp_path: Path, wrong: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    """The event is left out, said once to the user and once to the reader, and all goes on."""
    with Reporter(str(tmp_path), place=Place()) as progress:
        for _ in range(3):
            progress.iteration(0, **wrong)
        progress.iteration(0, items=4)
    said = capsys.readouterr().err
    name = next(iter(wrong))
    words = f"rank 0 leaves out iteration events whose {name} cannot be told"
    assert said.startswith(f"paceline: {words}")
    assert said.count("\n") == 1
    assert [(event.index, event.items) for event in _only(tmp_path, Iteration)] == [(0, 4)]
    assert [event.text.startswith(words) for event in _only(tmp_path, Note)] == [True]
    assert len(_only(tmp_path, End)) == 1


def test_no_method_raises_for_its_values(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Paths, notes, checkpoints and errors of any type do no harm either."""
    bad: Any = Awkward()
    progress = Reporter(str(tmp_path), place=Place(), info=bad)
    progress.epoch(bad, seconds=bad)
    progress.checkpoint(bad, epoch=bad, index=0, seconds=1.0)
    progress.checkpoint(Path("a"), epoch=0, index=0, seconds=1.0)  # type: ignore[arg-type]
    progress.metric("fid", bad)
    progress.metric("fid", None)  # type: ignore[arg-type]
    progress.picture(bad)
    progress.note(bad)
    progress.end(bad, error=bad)
    assert capsys.readouterr().err.count("\n") == 1
    assert [event.kind for event in _told(tmp_path)] == ["start", "note", "checkpoint"]


def test_an_error_that_cannot_be_shown_is_still_an_end(tmp_path: Path) -> None:
    """A failure whose own text fails is reported by its class."""

    class Shy(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    with pytest.raises(Shy), Reporter(str(tmp_path), place=Place()):
        raise Shy
    (end,) = _only(tmp_path, End)
    assert (end.status, end.error) == ("failed", "Shy: (it cannot be shown)")


def test_a_short_write_is_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A system that takes a few bytes at a time gets all of them, in order."""
    real = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: real(descriptor, data[:7]))
    with Reporter(str(tmp_path), place=Place()) as progress:
        progress.iteration(0, items=4)
    monkeypatch.undo()
    assert [event.kind for event in _told(tmp_path)] == ["start", "iteration", "end"]


def test_a_full_disk_ends_the_report_and_not_the_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The reporter says once that it gives up, and is silent from then on."""

    def full(descriptor: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, f"{descriptor} {len(data)}")

    progress = Reporter(str(tmp_path), place=Place())
    with monkeypatch.context() as patched:
        patched.setattr(os, "write", full)
        progress.iteration(0)
        progress.iteration(0)
    assert not progress.listening
    progress.end()
    said = capsys.readouterr().err
    assert said == "paceline: events of rank 0 stopped: No space left on device\n"


def test_nobody_asked_means_silence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the variable nothing is written, and no value is even looked at."""
    monkeypatch.delenv(EVENTS_VARIABLE, raising=False)
    monkeypatch.chdir(tmp_path)
    bad: Any = Awkward()
    with Reporter(info=bad) as progress:
        progress.iteration(bad, items=bad, metrics=bad)
        progress.epoch(bad)
        assert not progress.listening
    assert list(tmp_path.iterdir()) == []


def test_importing_takes_nothing_heavy() -> None:
    """A user's script gets the reporter for the price of a few standard modules."""
    heavy = ("asyncio", "pathlib", "logging", "urllib", "torch", "numpy", "pydantic")
    code = f"import sys, paceline.events; print([n for n in {heavy} if n in sys.modules])"
    # -S: an installation may have hooks of its own that import what they like.
    source = Path(__file__).parents[2] / "src"
    done = subprocess.run(
        [sys.executable, "-S", "-c", code],
        env={"PYTHONPATH": str(source)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[]"


BASE = {"rank": 0, "t": 1.0}


@pytest.mark.parametrize(
    "record",
    [
        {"kind": "iteration", **BASE, "seconds": "abc"},
        {"kind": "iteration", **BASE, "seconds": None},
        {"kind": "iteration", **BASE, "seconds": -0.5},
        {"kind": "iteration", **BASE, "seconds": math.nan},
        {"kind": "iteration", **BASE, "seconds": math.inf},
        {"kind": "iteration", **BASE, "wait_s": math.nan},
        {"kind": "iteration", **BASE, "index": 1.5},
        {"kind": "iteration", **BASE, "index": True},
        {"kind": "iteration", **BASE, "items": -16},
        {"kind": "iteration", **BASE, "items": 10**400},
        {"kind": "iteration", **BASE, "metrics": {"loss": "low"}},
        {"kind": "iteration", **BASE, "metrics": []},
        {"kind": "start", **BASE, "info": []},
        {"kind": "start", **BASE, "world_size": "2"},
        {"kind": "note", **BASE, "text": 5},
        {"kind": "end", **BASE, "status": None},
        {"kind": "metric", "rank": "0", "t": 1.0},
        {"kind": "metric", "rank": 0},
        {"kind": []},
        {"kind": None},
        {"no": "kind"},
        [],
        "text",
        5,
        None,
    ],
    ids=str,
)
def test_what_is_no_event_is_malformed(record: object) -> None:
    """Wrong types, missing fields and durations that are none are told apart from events."""
    with pytest.raises(MalformedEvent):
        parse_event(json.dumps(record))


def test_metrics_may_be_anything_that_a_float_can_be() -> None:
    """A loss that has diverged is a fact, not a mistake."""
    line = '{"kind":"iteration","rank":0,"t":1,"metrics":{"a":NaN,"b":-Infinity,"c":3}}'
    event = parse_event(line)
    assert isinstance(event, Iteration)
    assert math.isnan(event.metrics["a"])
    assert (event.metrics["b"], event.metrics["c"]) == (-math.inf, 3.0)


def test_texts_can_always_be_written() -> None:
    """Half a pair of surrogates, as in the names of some files, is replaced."""
    event = parse_event('{"kind":"note","rank":0,"t":1,"text":"a\\udc80b"}')
    assert isinstance(event, Note)
    assert event.text == "a?b"


def test_unknown_kinds_and_fields_are_passed_over() -> None:
    """A newer rank may say more than this reader knows."""
    assert parse_event('{"kind":"dance","rank":[]}') is None
    assert parse_event('{"kind":"end","rank":0,"t":1,"mood":[]}') == End(rank=0, t=1.0)


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=4,
)
_fields = st.sampled_from(
    ["rank", "t", "seconds", "items", "metrics", "info", "text", "epoch", "value", "error"]
)
_kinds = st.sampled_from(["start", "iteration", "epoch", "metric", "note", "end", "picture"])
_records = st.builds(
    lambda kind, more: {"kind": kind, **BASE, **more}, _kinds, st.dictionaries(_fields, _json)
)


@given(st.one_of(st.text(), _json.map(json.dumps), _records.map(json.dumps)))
def test_any_line_is_an_event_or_malformed(line: str) -> None:
    """Whatever a line holds, reading it ends in one of two ways."""
    try:
        event = parse_event(line)
    except MalformedEvent:
        return
    assert event is None or isinstance(event, Event)
