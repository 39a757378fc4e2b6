"""Where a spec comes from: a file, a text, a mapping, or nothing at all."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from paceline.errors import SpecError, UsageError
from paceline.model.spec.yaml_text import Parsed, parse_yaml

SpecSource = Path | str | Mapping[str, Any] | None

_LARGEST_BYTES = 1 << 20
_DEEPEST_COPY = 8


@dataclass(frozen=True)
class Source:
    """What was read: the name to blame, the folder that paths are relative to, the data."""

    name: str
    folder: Path
    parsed: Parsed = field(default_factory=Parsed)
    default_name: str | None = None


def read_source(source: SpecSource) -> Source:
    """Read a spec from wherever it is, without judging what it says.

    A string that has a line break, a colon before a space, or a leading brace is the text of a
    spec; any other string is the path of a file.
    """
    here = Path.cwd()
    if source is None:
        return Source("spec", here)
    if isinstance(source, Mapping):
        return Source("spec", here, Parsed(data=_copy(source, 0)))
    if isinstance(source, str) and _is_text(source):
        return Source("spec", here, parse_yaml(source))
    path = Path(source)
    return Source(str(path), _folder_of(path), parse_yaml(_read(path)), path.stem)


def _is_text(source: str) -> bool:
    return "\n" in source or ": " in source or source.startswith("{") or source.endswith(":")


def _copy(value: Any, depth: int) -> Any:
    """Copy mappings and lists; what is nested deeper than any spec stays as it is."""
    if depth < _DEEPEST_COPY and isinstance(value, Mapping):
        return {key: _copy(item, depth + 1) for key, item in value.items()}
    if depth < _DEEPEST_COPY and isinstance(value, (list, tuple)):
        return [_copy(item, depth + 1) for item in value]
    return value


def _folder_of(path: Path) -> Path:
    return Path(os.path.abspath(path)).parent  # noqa: PTH100 - links stay as the user wrote them


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            raw = file.read(_LARGEST_BYTES + 1)
    except FileNotFoundError as error:
        raise UsageError(f"there is no spec file {path}", hint=_near(path)) from error
    except IsADirectoryError as error:
        raise UsageError(f"{path} is a folder, not a spec file", hint=_inside(path)) from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"the spec file {path} cannot be read: {reason}") from error
    if len(raw) > _LARGEST_BYTES:
        raise UsageError(f"{path} is larger than any spec", hint="is it the right file?")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise SpecError(
            str(path), (f"line {line}: is not UTF-8 text",), hint="save the file as UTF-8"
        ) from error


def _near(path: Path) -> str:
    names = _specs_in(path.parent)
    found = get_close_matches(path.name, names, n=1)
    if found:
        return f"did you mean {path.parent / found[0]}?"
    return "check the path; without a file, the defaults apply"


def _inside(path: Path) -> str | None:
    names = _specs_in(path)
    return f"name a file in it, such as {path / names[0]}" if names else None


def _specs_in(folder: Path) -> list[str]:
    try:
        return sorted(item.name for item in folder.iterdir() if item.suffix in (".yaml", ".yml"))
    except OSError:
        return []
