"""One rank's events, read: its iterations, its epochs, and whether it came to a good end."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

from paceline.events import (
    SCHEMA_VERSION,
    End,
    Epoch,
    Event,
    Iteration,
    MalformedEvent,
    Metric,
    Note,
    Scalar,
    Start,
    parse_event,
    parse_events,
)
from paceline.model.summary import RankSample

_T = TypeVar("_T", bound=Event)
# What a trainer says at its start that decides its pace.
_CHOSEN = ("torch", "device", "precision", "wire", "backend")
_STEAL = "cpu_steal"


@dataclass(frozen=True)
class RankReading:
    """What one rank said in its last attempt. `problem` is why it does not count, if so.

    `iterations` are all that it reported, and `ended` is whether it said that it came to its end.
    `span_s` is the time by the rank's clock from the last iteration of the warm-up to the last
    iteration of all: what lies between the iterations is in it.
    """

    sample: RankSample
    attempts: int = 1
    attempt: int = 0
    world_size: int | None = None
    span_s: float | None = None
    iterations: int = 0
    ended: bool = True
    problem: str | None = None
    notes: tuple[str, ...] = ()


def read_rank(
    rank: int, source: Iterable[str | Event], *, warmup: int, host: str | None = None
) -> RankReading | None:
    """Read the lines or events of one rank; None if there are none.

    `host` is its host's name where we know it; otherwise the rank's own word counts.
    """
    events, problem = _all_events(rank, source)
    if not events and problem is None:
        return None
    attempts = _split_attempts(events)
    last = attempts[-1] if attempts else []
    start = next(iter(_only(Start, last)), None)
    iterations = _only(Iteration, last)
    where = host or (start.host if start else "")
    return RankReading(
        sample=_rank_sample(rank, where, last, iterations, warmup),
        attempts=len(attempts),
        attempt=start.attempt if start else 0,
        world_size=start.world_size if start else None,
        span_s=_span_s(iterations, warmup),
        iterations=len(iterations),
        ended=any(_only(End, last)),
        problem=problem or _problem(rank, start, last),
        notes=tuple(note.text for note in _only(Note, last)),
    )


def _all_events(rank: int, source: Iterable[str | Event]) -> tuple[list[Event], str | None]:
    """Return the events up to the first unreadable line, and what is wrong with that line."""
    events: list[Event] = []
    lines: list[str] = []
    for item in source:
        if isinstance(item, Event):
            events.append(item)
        elif item.strip():
            lines.append(item)
    try:
        events.extend(parse_events(lines))
    except MalformedEvent as error:
        return events, f"the events of rank {rank} are unreadable: {error}"
    if lines and _is_cut(lines[-1]):
        count = _count(len(_only(Iteration, events)), "iteration")
        return events, f"rank {rank} broke off in the middle of a line, after {count}"
    return events, None


def _is_cut(line: str) -> bool:
    try:
        parse_event(line)
    except MalformedEvent:
        return True
    return False


def _split_attempts(events: Sequence[Event]) -> list[list[Event]]:
    """Split where the rank was started again."""
    attempts: list[list[Event]] = []
    for event in events:
        if isinstance(event, Start) or not attempts:
            attempts.append([])
        attempts[-1].append(event)
    return attempts


def _only(kind: type[_T], events: Iterable[Event]) -> list[_T]:
    return [event for event in events if isinstance(event, kind)]


def _problem(rank: int, start: Start | None, events: Sequence[Event]) -> str | None:
    """Return why this rank's last attempt does not count; None where it does, as far as it says."""
    if start is not None and start.schema > SCHEMA_VERSION:
        return f"rank {rank} reports events of schema {start.schema}, newer than this program"
    end = next(iter(_only(End, events)), None)
    if end is None:
        return None
    if end.status == "stopped":
        count = _count(len(_only(Iteration, events)), "iteration")
        return f"rank {rank} was stopped after {count}"
    if end.status != "ok":
        return f"rank {rank} failed: {end.error or 'it did not say why'}"
    return None


def broke_off(rank: int, reading: RankReading) -> str:
    """Return the words for a rank that went away without a word."""
    count = _count(reading.iterations, "iteration")
    return f"rank {rank} broke off without an end, after {count}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _rank_sample(
    rank: int,
    host: str,
    events: Sequence[Event],
    iterations: Sequence[Iteration],
    warmup: int,
) -> RankSample:
    measured = iterations[warmup:]
    epochs = _only(Epoch, events)
    whole = {epoch.epoch for epoch in epochs if _is_whole(epoch, iterations)}
    items = _sum_if_all([item.items for item in measured])
    return RankSample(
        rank=rank,
        host=host,
        epoch_s=tuple(epoch.seconds for epoch in epochs if epoch.epoch in whole),
        iteration_s=tuple(item.seconds for item in measured),
        warmup_s=tuple(item.seconds for item in iterations[:warmup]),
        items=None if items is None else int(items),
        data_s=_sum_if_all([item.data_s for item in measured]),
        wait_s=_sum_if_all([item.wait_s for item in measured]),
        metrics=_last_metrics(events),
        first_epoch_s=_first_epoch_s(epochs, iterations),
        first_epoch_whole=0 in whole,
        partial=_partial_positions(iterations, warmup),
        iterations_per_epoch=max((item.of for item in iterations if item.of), default=None),
        settings=_settings(events),
        steal=_steal(events),
    )


def _settings(events: Sequence[Event]) -> Mapping[str, Scalar]:
    """Return what held while the rank worked: as it said at its end, and what its trainer chose."""
    chosen: Mapping[str, Scalar] = next((start.info for start in _only(Start, events)), {})
    held: Mapping[str, Scalar] = next((end.info for end in _only(End, events)), {})
    return {
        **{name: chosen[name] for name in _CHOSEN if chosen.get(name) is not None},
        **{name: value for name, value in held.items() if name != _STEAL},
    }


def _steal(events: Sequence[Event]) -> float | None:
    share = next((end.info.get(_STEAL) for end in _only(End, events)), None)
    return share if isinstance(share, float) else None


def _is_whole(epoch: Epoch, iterations: Sequence[Iteration]) -> bool:
    """Whether an epoch ran from its first iteration to its last, as far as anybody told us."""
    inside = [item for item in iterations if item.epoch == epoch.epoch]
    if not inside:
        return True
    of = inside[-1].of
    return inside[0].index == 0 and (of is None or inside[-1].index + 1 >= of)


def _first_epoch_s(epochs: Sequence[Epoch], iterations: Sequence[Iteration]) -> float | None:
    """Return the time spent in epoch 0: all of it, or as far as the rank went."""
    for epoch in epochs:
        if epoch.epoch == 0:
            return epoch.seconds
    inside = [item.seconds for item in iterations if item.epoch == 0]
    return math.fsum(inside) if inside else None


def _partial_positions(iterations: Sequence[Iteration], warmup: int) -> tuple[int, ...]:
    """Return which measured iterations ended an epoch with less than a full batch.

    Only the last iteration of an epoch can be one: jobs whose batches differ by nature (numbers
    of tokens, say) keep all the others in their mean.
    """
    full = max((item.items for item in iterations if item.items is not None), default=None)
    if full is None:
        return ()
    lasts = [
        index
        for index, (this, after) in enumerate(pairwise([*iterations, None]))
        if this is not None and (after is None or after.epoch != this.epoch)
    ]
    return tuple(
        index - warmup
        for index in lasts
        if index >= warmup and (items := iterations[index].items) is not None and items < full
    )


def _span_s(iterations: Sequence[Iteration], warmup: int) -> float | None:
    if not 0 < warmup < len(iterations):
        return None
    return iterations[-1].t - iterations[warmup - 1].t


def _sum_if_all(values: Sequence[float | None]) -> float | None:
    """Return the sum, or None where any part of it is missing: a part is not the whole."""
    known = [value for value in values if value is not None]
    if not known or len(known) < len(values):
        return None
    return math.fsum(known)


def _last_metrics(events: Iterable[Event]) -> Mapping[str, float]:
    """Return the last value of every metric that the rank reported in any way."""
    latest: dict[str, float] = {}
    for event in events:
        if isinstance(event, Metric):
            latest[event.name] = event.value
        elif isinstance(event, (Iteration, Epoch)):
            latest.update(event.metrics)
    return latest
