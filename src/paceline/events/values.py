"""The values of events: what is told is converted, what is read is checked.

Both go by the names of types in `nouns`. A reporter takes what can be turned into the type
without a change of value, such as a tensor with one element; a reader takes the type itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import lru_cache
from typing import Any, NamedTuple

from paceline.events.nouns import EVENT_TYPES

# Far above whatever is counted or timed, and low enough for sums and ratios to stay finite.
LARGEST = 2**63
LONGEST_S = 1e12
# Nobody can time less than this; a ratio of such times would be meaningless or infinite.
SHORTEST_S = 1e-9
_OR_NONE = " | None"


class Shape(NamedTuple):
    """How one field of an event is converted when it is told, and checked when it is read."""

    tell: Callable[[Any], Any]
    read: Callable[[Any], Any]
    may_be_none: bool


@lru_cache(maxsize=None)
def shapes_of(kind: str) -> Mapping[str, Shape]:
    """Return the shape of each field of a kind of event."""
    shapes = {}
    for item in fields(EVENT_TYPES[kind]):
        words = str(item.type)
        name = words[: -len(_OR_NONE)] if words.endswith(_OR_NONE) else words
        shapes[item.name] = Shape(_TELL[name], _READ[name], words != name)
    return shapes


def _number(value: Any) -> Any:
    # What tensors and arrays offer for this: `float` of one that has a gradient warns.
    return value.item() if hasattr(value, "item") else value


def _tell_whole(value: Any) -> int:
    number = value if type(value) is int else _number(value)
    whole = int(number)
    if whole != number or not -LARGEST <= whole <= LARGEST:
        raise ValueError(f"{value!r} is not a whole number")
    return whole


def _tell_float(value: Any) -> float:
    return value if type(value) is float else float(_number(value))


def _tell_count(value: Any) -> int:
    count = _tell_whole(value)
    if count < 0:
        raise ValueError(f"{value!r} is not a number of things")
    return count


def _tell_seconds(value: Any) -> float:
    seconds = round(_tell_float(value), 6)
    if not 0.0 <= seconds <= LONGEST_S:
        raise ValueError(f"{value!r} is not a duration")
    return seconds


def _tell_metrics(value: Any) -> dict[str, float]:
    return {str(name): _tell_float(number) for name, number in value.items()}


def _tell_info(value: Any) -> dict[str, Any]:
    return {
        str(name): item if item is None or isinstance(item, (str, int, float)) else str(item)
        for name, item in value.items()
    }


def _read_whole(value: Any) -> int:
    if type(value) is not int or not -LARGEST <= value <= LARGEST:
        raise TypeError("a whole number is not one")
    return value


def _read_count(value: Any) -> int:
    if _read_whole(value) < 0:
        raise ValueError("a number of things is not one")
    return int(value)


def _read_number(value: Any) -> float:
    return value if type(value) is float else float(_read_whole(value))


def _read_seconds(value: Any) -> float:
    number = _read_number(value)
    if not 0.0 <= number <= LONGEST_S:
        raise ValueError("a duration is not one")
    return number if number >= SHORTEST_S else 0.0


def _read_text(value: Any) -> str:
    if type(value) is not str:
        raise TypeError("a text is not one")
    # Half a pair of surrogates, as in the names of some files, could not be written anywhere.
    return value if value.isascii() else value.encode("utf-8", "replace").decode("utf-8")


def _read_metrics(value: Any) -> dict[str, float]:
    if type(value) is not dict:
        raise TypeError("metrics are no mapping")
    return {_read_text(name): _read_number(number) for name, number in value.items()}


def _read_info(value: Any) -> dict[str, Any]:
    if type(value) is not dict:
        raise TypeError("info is no mapping")
    return {
        _read_text(name): item
        if item is None or isinstance(item, (int, float))
        else _read_text(item if isinstance(item, str) else str(item))
        for name, item in value.items()
    }


_TELL: Mapping[str, Callable[[Any], Any]] = {
    "int": _tell_whole,
    "Count": _tell_count,
    "float": _tell_float,
    "str": str,
    "Seconds": _tell_seconds,
    "Metrics": _tell_metrics,
    "Info": _tell_info,
}
_READ: Mapping[str, Callable[[Any], Any]] = {
    "int": _read_whole,
    "Count": _read_count,
    "float": _read_number,
    "str": _read_text,
    "Seconds": _read_seconds,
    "Metrics": _read_metrics,
    "Info": _read_info,
}
