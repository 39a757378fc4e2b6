"""From lines to events; whatever the bytes, it is an event, nothing, or a MalformedEvent."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from paceline.events.nouns import EVENT_TYPES, Event
from paceline.events.values import shapes_of


class MalformedEvent(ValueError):
    """A line of an event file is not an event of this schema."""


def parse_event(line: str) -> Event | None:
    """Return the event that a line holds; None for a kind that this version does not know."""
    try:
        record: Any = json.loads(line)
        kind = record.pop("kind")
        event_type = EVENT_TYPES.get(kind)
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError) as error:
        raise MalformedEvent(f"not an event: {line[:80]!r}") from error
    if event_type is None:
        if not isinstance(kind, str):
            raise MalformedEvent(f"not an event: {line[:80]!r}")
        return None
    shapes = shapes_of(kind)
    values: dict[str, Any] = {}
    name = ""
    try:
        for name, value in record.items():
            shape = shapes.get(name)
            if shape is not None:
                values[name] = None if value is None and shape.may_be_none else shape.read(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise MalformedEvent(f"a {kind} event with a wrong {name}: {line[:80]!r}") from error
    try:
        return event_type(**values)
    except TypeError as error:
        raise MalformedEvent(f"incomplete {kind} event: {line[:80]!r}") from error


def parse_events(lines: Iterable[str]) -> Iterator[Event]:
    """Parse the lines of one rank; a last line that was cut off by a crash is passed over."""
    pending: MalformedEvent | None = None
    for line in lines:
        if not line.strip():
            continue
        if pending is not None:
            raise pending
        try:
            event = parse_event(line)
        except MalformedEvent as error:
            pending = error
            continue
        if event is not None:
            yield event
