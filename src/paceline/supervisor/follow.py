"""Tells what a job says while it says it: whole lines with their offsets, and its states.

A reader that comes back with the offsets that it has reached misses nothing and gets nothing
twice, because each piece of text bears the bytes of its file that it stands for.
"""
# ruff: noqa: PTH123
# That rule asks for pathlib, whose import would slow down the start of a job.

from __future__ import annotations

import codecs
import json
import os
import select
import time
from collections.abc import Iterator, Mapping

from paceline.supervisor.ending import current_state
from paceline.supervisor.files import JobFolder, write_all
from paceline.supervisor.job import EVENTS_FOLDER, LOGS_FOLDER, JobState

CHUNK_BYTES = 64 * 1024
POLL_S = 0.15
_CHECK_LIFE_EVERY_S = 1.0


def chunk_length(data: bytes, *, last: bool, limit: int = CHUNK_BYTES) -> int:
    """Return how much of the unread part of a file may go out now: whole lines if possible.

    A carriage return ends a line too, so that progress bars are seen moving. A line longer than
    the limit goes out in pieces, none of which ends within a character.
    """
    if last and len(data) < limit:
        return len(data)
    # What follows a carriage return decides whether it is half a line end.
    seen = data[:-1] if data.endswith(b"\r") else data
    end = max(seen.rfind(b"\n"), seen.rfind(b"\r")) + 1
    if end > 0 or len(data) < limit:
        return end
    return _whole_characters(data)


def _whole_characters(data: bytes) -> int:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    decoder.decode(data)
    unfinished, _ = decoder.getstate()
    return len(data) - len(unfinished)


class Follower:
    """Reads a job's event files and logs from given offsets on."""

    def __init__(self, folder: JobFolder, since: Mapping[str, int]) -> None:
        self._folder = folder
        self._offsets = dict(since)

    def pieces(self, *, last: bool) -> Iterator[dict[str, object]]:
        """Yield what is new in all files; `last` says that nothing will be added any more."""
        for name, path, size in self._files():
            while size > self._offsets.get(name, 0):
                piece = self._piece(name, path, last=last)
                if piece is None:
                    break
                yield piece

    def _files(self) -> Iterator[tuple[str, str, int]]:
        for part in (EVENTS_FOLDER, LOGS_FOLDER):
            try:
                with os.scandir(self._folder.within(part)) as entries:
                    files = sorted((entry.name, entry.stat().st_size) for entry in entries)
            except FileNotFoundError:
                continue
            for name, size in files:
                yield f"{part}/{name}", self._folder.within(part, name), size

    def _piece(self, name: str, path: str, *, last: bool) -> dict[str, object] | None:
        start = self._offsets.get(name, 0)
        try:
            with open(path, "rb") as file:
                file.seek(start)
                data = file.read(CHUNK_BYTES)
        except OSError:
            return None
        length = chunk_length(data, last=last)
        if length == 0:
            return None
        self._offsets[name] = start + length
        text = data[:length].decode("utf-8", "replace")
        return {"file": name, "start": start, "end": start + length, "text": text}


def follow(folder: JobFolder, since: Mapping[str, int], output: int) -> None:
    """Write JSON lines until the job has ended and all was told, or until nobody listens."""
    follower = Follower(folder, since)
    watch = _StateWatch(folder)
    # With an empty mask, a poll sleeps until its time is over or the other end is closed.
    poller = select.poll()
    poller.register(output, 0)
    try:
        while True:
            state, changed = watch.look()
            # The last state comes after everything else, so that it also says: this was all.
            if changed and not state.ended:
                _say(output, {"state": json.loads(state.to_json())})
            for piece in follower.pieces(last=state.ended):
                _say(output, piece)
            if state.ended:
                _say(output, {"state": json.loads(state.to_json())})
                return
            if poller.poll(POLL_S * 1000):
                return
    except BrokenPipeError:
        return


class _StateWatch:
    """Reads the state when its file has changed; now and then, sees whether anybody minds it."""

    def __init__(self, folder: JobFolder) -> None:
        self._folder = folder
        self._state = current_state(folder)
        self._version: tuple[int, int] | None = None
        self._checked_at = time.monotonic()

    def look(self) -> tuple[JobState, bool]:
        version = self._folder.state_version()
        now = time.monotonic()
        changed = version != self._version
        if changed:
            self._version = version
            self._state = self._folder.known_state()
        elif now - self._checked_at >= _CHECK_LIFE_EVERY_S:
            self._checked_at = now
            self._state = current_state(self._folder)
        return self._state, changed


def _say(output: int, record: Mapping[str, object]) -> None:
    write_all(output, json.dumps(record, separators=(",", ":")).encode() + b"\n")
