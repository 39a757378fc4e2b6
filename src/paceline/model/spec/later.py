"""What the spec has words for and this version does not have yet."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

from paceline.model.spec.complaints import sections
from paceline.model.spec.rules import Problem

_LATER: tuple[tuple[str, str, tuple[str, ...]], ...] = (("cluster", "provider", ("ec2",)),)


def set_aside_later(data: dict[str, Any]) -> Iterator[Problem]:
    """Yield a problem for each such word, and take it and what goes with it out of the data."""
    for section, key, later in _LATER:
        values = data.get(section)
        value = values.get(key) if isinstance(values, dict) else None
        if not isinstance(values, dict) or value not in later:
            continue
        there_is = ", ".join(get_args(sections()[(section,)].model_fields[key].annotation))
        yield Problem((section, key), f"{value} is not in this version yet; there is: {there_is}")
        # The other keys of a cluster or runtime to come are no mistakes.
        data[section] = {}
