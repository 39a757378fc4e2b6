"""A study as one JSON document, and back: `study.json`.

    schema            "paceline.study"
    schema_version    1; it grows when a reader of the old form would be misled
    name, headline, unit, created_at, data, measured, notes, complete
    configurations    one object each, with its estimates and all its samples, raw
    provenance        what the caller knows of machines, versions and settings

What is missing is null. JSON has no NaN: a figure that is not finite is null as well.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import fields
from math import isfinite
from typing import Any

from paceline.errors import StorageError
from paceline.model.plan import Configuration
from paceline.model.summary import (
    ConfigurationSummary,
    Estimate,
    RankSample,
    Sample,
    StudySummary,
    TimeParts,
)

SCHEMA = "paceline.study"
SCHEMA_VERSION = 1

_UNLIKE_NUMBERS = frozenset({dict, list, str})
_ESTIMATES = (
    "items_per_s",
    "iteration_s",
    "epoch_s",
    "wall_s",
    "speedup",
    "efficiency",
    "cost_per_epoch_usd",
    "expected_epoch_s",
    "serial_fraction",
)


def dumps(summary: StudySummary) -> str:
    """Return the text of `study.json`, ending in a newline."""
    return _text(to_document(summary), "") + "\n"


def _text(value: Any, margin: str) -> str:
    """Return indented JSON with each series of numbers on one line.

    The json module indents one value after the other in Python. A study is written again after
    each sample, and most of it are series: they go through the module's quick way.
    """
    inner = f"{margin} "
    if isinstance(value, dict) and value:
        parts = [f"{inner}{_quick(name)}: {_text(item, inner)}" for name, item in value.items()]
        return "{\n" + ",\n".join(parts) + f"\n{margin}}}"
    if isinstance(value, list) and not _UNLIKE_NUMBERS.isdisjoint(map(type, value)):
        parts = [f"{inner}{_text(item, inner)}" for item in value]
        return "[\n" + ",\n".join(parts) + f"\n{margin}]"
    return _quick(value)


def _quick(value: Any) -> str:
    return json.dumps(value, allow_nan=False, ensure_ascii=False)


def loads(text: str) -> StudySummary:
    """Read the text of `study.json`; a StorageError says what is wrong with it."""
    try:
        document = json.loads(text)
    except ValueError as error:
        raise StorageError(
            f"this is not a study document: {error}",
            hint="Write it anew with `paceline report`.",
        ) from error
    return from_document(document)


def to_document(summary: StudySummary) -> dict[str, Any]:
    """Return the study as plain data."""
    document = {
        "schema": SCHEMA,
        "schema_version": SCHEMA_VERSION,
        **_plain(summary),
        "complete": summary.complete,
        "configurations": [_configuration_summary(item) for item in summary.configurations],
    }
    provenance = document.pop("provenance")
    return {**document, "provenance": provenance}


def from_document(document: Any) -> StudySummary:
    """Build a study from plain data; keys that this version does not know are passed over."""
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise StorageError(
            f"this is not a study document: its schema is not {SCHEMA!r}",
            hint="Give the study.json that `paceline study` or `paceline report` has written.",
        )
    version = document.get("schema_version")
    if not isinstance(version, int) or version > SCHEMA_VERSION:
        raise StorageError(
            f"the study document has schema version {version}, this program reads {SCHEMA_VERSION}",
            hint="Use the version of Paceline that wrote it, or a newer one.",
        )
    try:
        return _study(document)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise StorageError(
            f"the study document is broken: {type(error).__name__}: {error}",
            hint="Write it anew with `paceline report`.",
        ) from error


def _study(document: Mapping[str, Any]) -> StudySummary:
    known = _known(StudySummary, document)
    items = [_read_configuration_summary(item) for item in document["configurations"]]
    return StudySummary(
        **{
            **known,
            "configurations": tuple(items),
            "notes": tuple(document.get("notes", ())),
            "ties": tuple(tuple(group) for group in document.get("ties", ())),
        }
    )


def _configuration_summary(item: ConfigurationSummary) -> dict[str, Any]:
    """Return one configuration with its own words beside its numbers."""
    return {
        **_plain(item),
        "configuration": _configuration(item.configuration),
        "samples": [
            {**_plain(sample), "configuration": item.configuration.label} for sample in item.samples
        ],
    }


def _read_configuration_summary(data: Mapping[str, Any]) -> ConfigurationSummary:
    configuration = _read_configuration(data["configuration"])
    estimates = {
        name: None if data.get(name) is None else Estimate(**_known(Estimate, data[name]))
        for name in _ESTIMATES
    }
    samples = tuple(_read_sample(sample, configuration) for sample in data["samples"])
    parts = data.get("parts")
    return ConfigurationSummary(
        **{
            **_known(ConfigurationSummary, data),
            **estimates,
            "configuration": configuration,
            "samples": samples,
            "parts": None if parts is None else _read_parts(parts),
            "notes": tuple(data.get("notes", ())),
        }
    )


def _read_parts(data: Mapping[str, Any]) -> TimeParts:
    names = [item.name for item in fields(TimeParts)]
    return TimeParts(*(Estimate(**_known(Estimate, data[name])) for name in names))


def _configuration(configuration: Configuration) -> dict[str, Any]:
    return {
        **_plain(configuration),
        "args": dict(configuration.args),
        "world_size": configuration.world_size,
        "label": configuration.label,
        "title": configuration.title,
    }


def _read_configuration(data: Mapping[str, Any]) -> Configuration:
    args = tuple((name, value) for name, value in data.get("args", {}).items())
    return Configuration(**{**_known(Configuration, data), "args": args})


def _read_sample(data: Mapping[str, Any], configuration: Configuration) -> Sample:
    return Sample(
        **{
            **_known(Sample, data),
            "configuration": configuration,
            "ranks": tuple(_read_rank(rank) for rank in data.get("ranks", ())),
            "notes": tuple(data.get("notes", ())),
            "metrics": _numbers(data.get("metrics", {})),
        }
    )


def _read_rank(data: Mapping[str, Any]) -> RankSample:
    series = ("epoch_s", "iteration_s", "warmup_s", "partial")
    return RankSample(
        **{
            **_known(RankSample, data),
            **{name: tuple(data.get(name, ())) for name in series},
            "metrics": _numbers(data.get("metrics", {})),
        }
    )


def _numbers(data: Mapping[str, float | None]) -> dict[str, float]:
    return {name: value for name, value in data.items() if value is not None}


def _known(kind: type[Any], data: Mapping[str, Any]) -> dict[str, Any]:
    names = {item.name for item in fields(kind)}
    return {name: value for name, value in data.items() if name in names}


def _plain(value: Any) -> Any:
    """Return frozen data as what JSON knows, field by field."""
    if hasattr(value, "__dataclass_fields__"):
        return {item.name: _plain(getattr(value, item.name)) for item in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return _plain_list(value)
    if isinstance(value, float):
        return value if isfinite(value) else None
    if value is None or isinstance(value, (str, int, bool)):
        return value
    return str(value)


def _plain_list(values: Iterable[Any]) -> list[Any]:
    known = list(values)
    if set(map(type, known)) == {float} and all(map(isfinite, known)):
        return known  # a series, which may be long
    return [_plain(item) for item in known]
