"""The filters and pages of the Describe calls, over the answers' own words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import translate
from typing import Any, TypeVar

from moto.ec2.exceptions import EC2ClientError

Facts = dict[str, Any]
_MOST_PER_PAGE = 1000
_Item = TypeVar("_Item")


def select(
    items: Sequence[Facts], filters: Sequence[Mapping[str, Any]], paths: Mapping[str, str]
) -> list[Facts]:
    """Return what passes all filters; `paths` says where a filter's value stands in an item."""
    chosen = list(items)
    for entry in filters:
        name, wanted = entry["Name"], _pattern(entry.get("Values") or [])
        chosen = [
            item
            for item in chosen
            if any(wanted.fullmatch(value) for value in _values(item, name, paths))
        ]
    return chosen


def page(items: Sequence[_Item], params: Mapping[str, Any]) -> tuple[list[_Item], str | None]:
    """Return the page that was asked for, and the word that leads to the next."""
    start = int(params.get("NextToken") or 0)
    size = int(params.get("MaxResults") or _MOST_PER_PAGE)
    end = start + size
    return list(items[start:end]), str(end) if end < len(items) else None


def _pattern(values: Sequence[str]) -> re.Pattern[str]:
    return re.compile("|".join(translate(value) for value in values) or r"(?!)")


def _values(item: Facts, name: str, paths: Mapping[str, str]) -> Iterator[str]:
    tags = {tag["Key"]: tag["Value"] for tag in item.get("Tags") or ()}
    if name.startswith("tag:"):
        yield from (value for key, value in tags.items() if key == name[4:])
    elif name == "tag-key":
        yield from tags
    elif name in paths:
        yield from _walk(item, paths[name].split("."))
    else:
        raise EC2ClientError("InvalidParameterValue", f"The filter '{name}' is invalid")


def _walk(value: Any, path: Sequence[str]) -> Iterator[str]:
    if isinstance(value, (list, tuple)):
        for entry in value:
            yield from _walk(entry, path)
    elif path:
        if isinstance(value, Mapping):
            yield from _walk(value.get(path[0]), path[1:])
    elif isinstance(value, bool):
        yield str(value).lower()
    elif value is not None:
        yield str(value)
