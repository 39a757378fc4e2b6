"""Words and numbers for people, and the streams that they go to."""

from __future__ import annotations

import errno
import io
import json

import pytest

from paceline.cli import show
from paceline.errors import StorageError
from paceline.model.command import Command, Secret
from paceline.model.plan import Configuration
from paceline.model.record import RunState


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (None, ""),
        (0.04, "0.0 s"),
        (9.96, "10.0 s"),
        (59.4, "59 s"),
        (60, "1 min 00 s"),
        (3599.7, "1 h 00 min"),
        (7500, "2 h 05 min"),
    ],
)
def test_durations_read_well(seconds: float | None, words: str) -> None:
    """Durations have the unit that a person would choose."""
    assert show.duration(seconds) == words


def test_nouns_become_json() -> None:
    """Dataclasses, enums and tuples become plain JSON data."""
    plain = show.plain({"c": Configuration(1, 2), "s": RunState.LOST, "t": (1, None)})
    assert json.loads(json.dumps(plain)) == {
        "c": {
            "nodes": 1,
            "procs_per_node": 2,
            "batch_size": None,
            "args": [],
            "instance_type": None,
            "runtime": None,
            "launcher": None,
        },
        "s": "lost",
        "t": [1, None],
    }


def test_no_secret_becomes_json() -> None:
    """A secret inside a noun stays hidden, whatever else of the noun is shown."""
    plain = show.plain(Command(("true",), env={"HF_TOKEN": Secret("hush-hush"), "X": "1"}))
    assert plain["env"] == {"HF_TOKEN": "[secret]", "X": "1"}


def test_columns_are_aligned_without_trailing_space() -> None:
    """Tables are aligned, and their lines end where their text does."""
    assert show.columns([("A", "LONG"), ("value", "x")]) == "A      LONG\nvalue  x"


class Full(io.StringIO):
    """A stream on a full disk."""

    def write(self, text: str) -> int:
        """Refuse."""
        del text
        raise OSError(errno.ENOSPC, "No space left on device")


class Deserted(io.StringIO):
    """A pipe whose reader has gone."""

    def write(self, text: str) -> int:
        """Refuse."""
        del text
        raise BrokenPipeError


def test_a_result_that_cannot_be_written_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk behind stdout is an error of storage, with its reason."""
    monkeypatch.setattr("sys.stdout", Full())
    with pytest.raises(StorageError, match="No space left on device"):
        show.out("result")


def test_a_result_that_nobody_reads_is_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    """`paceline ls | head` is quiet, while a stream of output is told to end."""
    monkeypatch.setattr("sys.stdout", Deserted())
    show.out("result")
    with pytest.raises(show.ReaderGone):
        show.out_raw("one of many lines")


@pytest.mark.parametrize("stream", [Full(), Deserted(), None])
def test_what_cannot_be_said_is_passed_over(
    monkeypatch: pytest.MonkeyPatch, stream: io.StringIO | None
) -> None:
    """Hints that nobody can read keep nothing from going on."""
    monkeypatch.setattr("sys.stderr", stream)
    show.say("hint")


def test_a_relay_outlives_its_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run goes on when our output cannot; a full disk is said once the run has ended."""
    monkeypatch.setattr("sys.stdout", Deserted())
    relay = show.Relay(show.out_raw)
    relay("one")
    relay.settle()
    monkeypatch.setattr("sys.stdout", Full())
    relay("two")
    with pytest.raises(StorageError):
        relay.settle()
