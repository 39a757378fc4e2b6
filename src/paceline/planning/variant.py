"""The spec of one configuration: what the configuration has of its own, put over the spec's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from paceline.model.plan import Configuration
from paceline.model.spec import Spec

# Where in a spec each axis of its own lies that is no argument of the job.
PLACES: Mapping[str, tuple[str, str]] = {
    "instance_type": ("cluster", "instance_type"),
    "runtime": ("runtime", "kind"),
    "launcher": ("job", "launcher"),
}
# A spec may list several of these, to be tried in turn; a configuration has one.
_SEVERAL = ("instance_type",)


def variant_of(spec: Spec, configuration: Configuration) -> Spec:
    """Return the spec with the configuration's own instance type, runtime and launcher."""
    changed: dict[str, Any] = {}
    for axis, (section, key) in PLACES.items():
        value = getattr(configuration, axis)
        part = changed.get(section, getattr(spec, section))
        if value is not None and own_value(spec, axis) != value:
            kept = (value,) if axis in _SEVERAL else value
            changed[section] = part.model_copy(update={key: kept})
    return spec.model_copy(update=changed) if changed else spec


def own_value(spec: Spec, axis: str) -> Any:
    """Return what the spec itself has for an axis; None where it has nothing."""
    section, key = PLACES[axis]
    value = getattr(getattr(spec, section), key, None)
    return value[0] if axis in _SEVERAL and value else value


def same_place(one: Configuration, other: Configuration) -> bool:
    """Whether two configurations run on the same hosts in the same way."""
    return (one.instance_type, one.runtime) == (other.instance_type, other.runtime)
