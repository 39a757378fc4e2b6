"""YAML text as plain data, with the line of every key and all mistakes of its form.

The text is composed into nodes, which know their lines and still hold keys that are given
twice; the nodes are then turned into plain data here. No tag can make anything but text,
numbers, lists and mappings.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from paceline.model.spec.rules import Path, Problem

_TAG = "tag:yaml.org,2002:"
_PLAIN_TAGS = ("str", "int", "float", "bool", "null", "timestamp", "value", "merge")
_WORDS = {"int": "a whole number", "float": "a number", "bool": "true or false", "null": "nothing"}
_MOST_NODES = 20_000
_DEEPEST = 20


@dataclass
class Parsed:
    """What a text holds: its data, the line of each path, and what is wrong with its form."""

    data: Any = None
    lines: dict[Path, int] = field(default_factory=dict)
    problems: list[tuple[int | None, Problem]] = field(default_factory=list)


def parse_yaml(text: str) -> Parsed:
    """Parse YAML text; what cannot be parsed is among the problems of the result."""
    yaml = YAML(typ="safe", pure=True)
    parsed = Parsed()
    try:
        node = yaml.compose(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = None if mark is None else mark.line + 1
        parsed.problems.append((line, Problem((), _syntax(error, text, line))))
    except YAMLError as error:
        parsed.problems.append((_reader_line(error, text), Problem((), _first_line(error))))
    except RecursionError:
        parsed.problems.append((None, Problem((), "is nested too deeply")))
    else:
        _fill(parsed, yaml, node)
    return parsed


def _fill(parsed: Parsed, yaml: YAML, node: Node | None) -> None:
    if node is None:
        return
    try:
        parsed.data = _Builder(yaml, parsed).build(node, ())
    except _TooLarge as error:
        parsed.problems.append((error.line, Problem((), "is too large or nested too deeply")))
    except RecursionError:
        parsed.problems.append((None, Problem((), "is nested too deeply")))


class _TooLarge(Exception):
    """The data have no end: an alias that holds itself, or that multiplies."""

    def __init__(self, line: int) -> None:
        super().__init__(line)
        self.line = line


class _Builder:
    """Turns nodes into plain data and writes down where each came from."""

    def __init__(self, yaml: YAML, parsed: Parsed) -> None:
        self._construct = yaml.constructor.construct_object
        self._parsed = parsed
        self._count = 0

    def build(self, node: Node, path: Path) -> Any:
        """Return the plain data of a node; aliases are followed, within bounds."""
        self._count += 1
        self._parsed.lines.setdefault(path, node.start_mark.line + 1)
        if self._count > _MOST_NODES or len(path) > _DEEPEST:
            raise _TooLarge(node.start_mark.line + 1)
        if isinstance(node, MappingNode):
            return self._mapping(node, path)
        if isinstance(node, SequenceNode):
            return [self.build(item, (*path, index)) for index, item in enumerate(node.value)]
        return self._scalar(node, path)

    def _mapping(self, node: MappingNode, path: Path) -> dict[str, Any]:
        merged: dict[str, Any] = {}
        own: dict[str, Any] = {}
        for key, value in node.value:
            if not isinstance(key, ScalarNode):
                self._say(key, path, "has a key that is not a word")
            elif key.tag == f"{_TAG}merge":
                merged = {**self._merged(value, path), **merged}
            elif key.value in own:
                here = (*path, key.value)
                first = self._parsed.lines[here]
                self._say(key, here, f"is given twice, first in line {first}")
            else:
                here = (*path, key.value)
                self._parsed.lines[here] = key.start_mark.line + 1
                own[key.value] = self.build(value, here)
        return {**merged, **own}

    def _merged(self, node: Node, path: Path) -> dict[str, Any]:
        merged: dict[str, Any] = {}
        for part in node.value if isinstance(node, SequenceNode) else [node]:
            if isinstance(part, MappingNode):
                merged = {**self.build(part, path), **merged}
            else:
                self._say(part, path, "can only merge mappings with `<<`")
        return merged

    def _scalar(self, node: Node, path: Path) -> Any:
        tag = str(node.tag).removeprefix(_TAG)
        if tag not in _PLAIN_TAGS:
            self._say(node, path, f"has a tag that is not understood here: {node.tag}")
            return None
        if tag in ("str", "timestamp", "value", "merge"):
            return str(node.value)
        try:
            return self._construct(node)
        except (YAMLError, ValueError, TypeError, KeyError, IndexError, OverflowError):
            self._say(node, path, f"is not {_WORDS[tag]}: {str(node.value)[:40]}")
            return None

    def _say(self, node: Node, path: Path, text: str) -> None:
        self._parsed.problems.append((node.start_mark.line + 1, Problem(path, text)))


def _syntax(error: MarkedYAMLError, text: str, line: int | None) -> str:
    problem = str(error.problem or error.context or "it cannot be parsed").removeprefix("but ")
    if line is not None and "\t" in _leading(text, line):
        return "is indented with a tab; YAML wants spaces"
    if "mapping values are not allowed" in problem:
        return "a colon stands where none can be; look at the indentation, or quote the value"
    begun = error.context_mark
    if begun is not None and line is not None and begun.line + 1 != line:
        problem += f", in what began in line {begun.line + 1}"
    return f"is not YAML: {problem}"


def _leading(text: str, line: int) -> str:
    lines = text.splitlines()
    found = lines[line - 1] if line <= len(lines) else ""
    return found[: len(found) - len(found.lstrip())]


def _first_line(error: YAMLError) -> str:
    words = next(iter(_lines_of(error)), "")
    return f"is not YAML: {words}" if words else "is not YAML"


def _lines_of(error: YAMLError) -> Iterator[str]:
    return (line.strip() for line in str(error).splitlines() if line.strip())


def _reader_line(error: YAMLError, text: str) -> int | None:
    position = getattr(error, "position", None)
    return text.count("\n", 0, position) + 1 if isinstance(position, int) else None
