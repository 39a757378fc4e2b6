"""Iterations that were measured elsewhere: a CSV file, plain or gzipped, becomes launches."""

from __future__ import annotations

import csv
import gzip
import io
import math
import zlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from paceline.advise.nouns import EpochTimes, Launch, Target
from paceline.errors import DataError

_GZIP_MAGIC = b"\x1f\x8b"
_NEEDED = (
    "instance_type", "nodes", "procs_per_node", "batch_size", "iteration", "seconds",
)  # fmt: skip
_OPTIONAL = ("study", "rank", "epoch", "iterations_per_epoch")
_MOST_PROBLEMS = 10
# Far beyond any cluster; a larger number is a slip, and would only break the arithmetic.
_LARGEST = 10**9
_Cells = Mapping[str, str]


@dataclass(frozen=True)
class _Row:
    study: str
    target: Target
    rank: int
    epoch: int
    iteration: int
    planned: int | None
    seconds: float


def parse_iterations(content: bytes, *, source: str) -> tuple[Launch, ...]:
    """Read launches from a CSV of iterations; DataError names every bad line by its number.

    The order of rows and columns means nothing, further columns are ignored, and a row that
    stands there twice counts once. Two different times for the same iteration of the same rank
    are two launches.
    """
    reader = csv.reader(io.StringIO(_text(content, source), newline=""))
    try:
        header = [name.strip() for name in next(reader, [])]
        _require_columns(header, source)
        rows, problems = _read(reader, header)
    except csv.Error as error:
        raise DataError(
            f"{source}, line {reader.line_num}: this is no CSV: {error}", hint="see docs/advice.md"
        ) from error
    if problems:
        raise _bad_lines(source, problems)
    if not rows:
        raise DataError(f"{source}: no iterations in it", hint="one line for each iteration")
    return launches_of(rows)


def _text(content: bytes, source: str) -> str:
    try:
        plain = gzip.decompress(content) if content.startswith(_GZIP_MAGIC) else content
        text = plain.decode("utf-8-sig")
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise DataError(
            f"{source}: this is no file of iterations: {error}",
            hint="CSV as text, plain or gzipped",
        ) from error
    if "\0" in text:
        raise DataError(f"{source}: this is no text", hint="CSV as text, plain or gzipped")
    return text


def _require_columns(header: Sequence[str], source: str) -> None:
    missing = [name for name in _NEEDED if name not in header]
    if missing:
        raise DataError(
            f"{source}, line 1: no column {', '.join(missing)}",
            hint=f"needed are {', '.join(_NEEDED)}; also read are {', '.join(_OPTIONAL)}",
        )


def _bad_lines(source: str, problems: Sequence[str]) -> DataError:
    shown = [f"{source}, {problem}" for problem in problems[:_MOST_PROBLEMS]]
    if len(problems) > len(shown):
        shown.append(f"and {len(problems) - len(shown)} more")
    return DataError("\n".join(shown), hint="correct these lines, or leave them out")


def _read(reader: Iterable[list[str]], header: Sequence[str]) -> tuple[list[_Row], list[str]]:
    rows: list[_Row] = []
    problems: list[str] = []
    for number, values in enumerate(reader, start=2):
        if not any(value.strip() for value in values):
            continue
        cells = dict(zip(header, (value.strip() for value in values), strict=False))
        # One too many is how a decimal comma looks, and would be read as another number.
        spilt = any(value.strip() for value in values[len(header) :])
        found = ["more cells than columns"] if spilt else _problems(cells)
        problems += [f"line {number}: {problem}" for problem in found]
        if not found:
            rows.append(_row(cells))
    return rows, problems


def _problems(cells: _Cells) -> list[str]:
    problems = [f"{name} is empty" for name in _NEEDED if not cells.get(name)]
    counts = {"nodes": 1, "procs_per_node": 1, "batch_size": 1, "iterations_per_epoch": 1}
    for name, least in {**counts, "rank": 0, "epoch": 0, "iteration": 0}.items():
        if cells.get(name) and _whole(cells[name], least) is None:
            problems.append(f"{name} is {cells[name]!r}, not a whole number from {least} on")
    if cells.get("seconds") and _positive(cells["seconds"]) is None:
        problems.append(f"seconds is {cells['seconds']!r}, not a positive number")
    return problems or _contradictions(cells)


def _contradictions(cells: _Cells) -> list[str]:
    planned = _whole(cells.get("iterations_per_epoch", ""), 1)
    iteration = _whole(cells["iteration"], 0) or 0
    if planned is None or iteration < planned:
        return []
    return [f"iteration {iteration} of {planned}: iterations are counted from 0"]


def _whole(text: str, least: int) -> int | None:
    """Return a whole number, also one that a spreadsheet wrote as `2.0`; else None."""
    value = _number(text)
    if value is None or value != int(value) or not least <= value <= _LARGEST:
        return None
    return int(value)


def _positive(text: str) -> float | None:
    value = _number(text)
    return value if value is not None and 0 < value <= _LARGEST else None


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _row(cells: _Cells) -> _Row:
    nodes, procs, batch = (int(float(cells[name])) for name in _NEEDED[1:4])
    return _Row(
        study=cells.get("study", ""),
        target=Target(cells["instance_type"], nodes, procs, batch),
        rank=_whole(cells.get("rank", ""), 0) or 0,
        epoch=_whole(cells.get("epoch", ""), 0) or 0,
        iteration=int(float(cells["iteration"])),
        planned=_whole(cells.get("iterations_per_epoch", ""), 1),
        seconds=float(cells["seconds"]),
    )


def launches_of(rows: Iterable[_Row]) -> tuple[Launch, ...]:
    """Return the launches that rows tell of, in an order that does not depend on theirs."""
    grouped: dict[tuple[str, Target, int, int], list[_Row]] = defaultdict(list)
    times: dict[tuple[object, ...], int] = defaultdict(int)
    for row in _filled(tuple(dict.fromkeys(rows))):
        # Another length of the epoch is another data set, so another launch.
        kind = (row.study, row.target, row.planned or 0)
        place = (*kind, row.rank, row.epoch, row.iteration)
        launch = (*kind, times[place])
        grouped[launch].append(row)
        times[place] += 1
    numbers: dict[tuple[str, Target], int] = defaultdict(int)
    launches = []
    for (study, target, *_), own in sorted(grouped.items(), key=lambda item: item[0]):
        launches.append(Launch(study, target, _epochs(own), numbers[study, target]))
        numbers[study, target] += 1
    return tuple(launches)


def _filled(rows: Sequence[_Row]) -> Iterable[_Row]:
    """Yield the rows; where some do not say how long the epoch is, the others' word counts."""
    told: dict[tuple[str, Target], set[int]] = defaultdict(set)
    for row in rows:
        if row.planned is not None:
            told[row.study, row.target].add(row.planned)
    for row in rows:
        known = told[row.study, row.target]
        if row.planned is None and len(known) == 1:
            yield replace(row, planned=min(known))
        else:
            yield row


def _epochs(rows: Iterable[_Row]) -> tuple[EpochTimes, ...]:
    grouped: dict[int, list[_Row]] = defaultdict(list)
    for row in rows:
        grouped[row.epoch].append(row)
    return tuple(_epoch(number, own) for number, own in sorted(grouped.items()))


def _epoch(number: int, rows: Sequence[_Row]) -> EpochTimes:
    """Return one epoch; in synchronous training an iteration takes as long on every rank."""
    times: dict[int, list[float]] = defaultdict(list)
    for row in rows:
        times[row.iteration].append(row.seconds)
    planned = [row.planned for row in rows if row.planned is not None]
    # Sorted before they are added up: the order of the rows must not move the last digit.
    seconds = {index: fmean(sorted(own)) for index, own in sorted(times.items())}
    return EpochTimes(number, max(planned, default=None), seconds)
