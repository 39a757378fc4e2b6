"""`key=value` words of the command line, applied over what a file says."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from paceline.model.spec.rules import Path, Problem
from paceline.model.spec.sections import HOW_TO_MEASURE, WHAT_TO_RUN, WHERE_HOSTS_ARE
from paceline.model.spec.yaml_text import parse_yaml

OVERRIDE_FLAG = "--set"

# Below these, what follows is one key, dots and all.
_FREE = (
    ("job", "args"), ("job", "env"), ("job", "extract"), ("runtime", "env"),
    ("study", "grid"), ("study", "baseline", "args"),
)  # fmt: skip
# To set one of these is to take the others back.
_RIVALS = (
    ("job", WHAT_TO_RUN), ("study", HOW_TO_MEASURE), ("cluster", WHERE_HOSTS_ARE),
)  # fmt: skip


@dataclass(frozen=True)
class Override:
    """One value that goes over the file's; `word` is how the user wrote it."""

    path: Path
    value: Any
    word: str

    @property
    def origin(self) -> str:
        """What to blame if the value does not fit; values of variables stay hidden."""
        shown = self.word.partition("=")[0] if "env" in self.path else self.word
        return f"{OVERRIDE_FLAG} {shown}"


def parse_override(word: str) -> Override | Problem:
    """Read a word such as `job.args.batch_size=32`; its value is a YAML scalar, list or {map}."""
    key, equals, text = word.partition("=")
    parts = [part.strip() for part in key.split(".")]
    if not equals or not all(parts):
        return Problem((), f"{OVERRIDE_FLAG} {word}: must be KEY=VALUE, as in study.samples=5")
    path = _path(tuple(parts))
    parsed = parse_yaml(_as_value(text))
    if parsed.problems:
        return Problem((), f"{OVERRIDE_FLAG} {key}: {parsed.problems[0][1].text}")
    return Override(path, parsed.data, word)


def apply(
    overrides: Sequence[Override], data: dict[str, Any], forget: Callable[[Path], None]
) -> list[Problem]:
    """Put the values over `data`, in order; `forget` is told of each path that is replaced."""
    problems = []
    for override in overrides:
        if override.value is not None:
            _withdraw_rivals(override.path, data)
        target: Any = data
        for depth, part in enumerate(override.path[:-1]):
            if target.get(part) is None:
                target[part] = {}
            target = target[part]
            if not isinstance(target, dict):
                where = Problem(override.path[: depth + 1], "").where
                problems.append(Problem((), f"{override.origin}: {where} is not a section"))
                break
        else:
            target[override.path[-1]] = override.value
            forget(override.path)
    return problems


def _path(parts: tuple[str, ...]) -> Path:
    for free in _FREE:
        if parts[: len(free)] == free and len(parts) > len(free) + 1:
            return (*free, ".".join(parts[len(free) :]))
    return parts


def _as_value(text: str) -> str:
    """Return YAML for a value that was typed: `a: b` and `# x` are text on a command line."""
    stripped = text.strip()
    if stripped[:1] in ("[", "{", '"', "'") or not stripped:
        return stripped
    plain = parse_yaml(stripped)
    if not plain.problems and not isinstance(plain.data, (dict, list)) and "#" not in stripped:
        return stripped
    return json.dumps(text)


def _withdraw_rivals(path: Path, data: Mapping[str, Any]) -> None:
    for section, names in _RIVALS:
        inside = data.get(section)
        if len(path) > 1 and path[0] == section and path[1] in names and isinstance(inside, dict):
            for name in names:
                if name != path[1]:
                    inside.pop(name, None)
