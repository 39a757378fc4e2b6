"""From a file, a text or a mapping to a spec; all mistakes at once, each with its line."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from paceline.errors import SpecError
from paceline.model.spec import overrides as over
from paceline.model.spec.complaints import complaints, describe, sections
from paceline.model.spec.places import inside, make_absolute, missing_files
from paceline.model.spec.rules import Path as KeyPath
from paceline.model.spec.rules import Problem, broken_rules
from paceline.model.spec.source import Source, SpecSource, read_source
from paceline.model.spec.spec import Spec, to_data

_HINT = "docs/spec.md describes every key; `paceline plan` checks a spec without running it"
_AFTER_ALL_LINES = 10**9


def load_spec(
    source: SpecSource | Spec = None, overrides: Sequence[str] = (), *, check_files: bool = True
) -> Spec:
    """Return the spec that a source and the words over it make; SpecError for all mistakes.

    Paths are relative to the folder of the file; those in overrides to the current one.
    `check_files` looks whether the script, the folder and the Python that are named are there.
    """
    read = read_source(to_data(source) if isinstance(source, Spec) else source)
    draft = _Draft(read)
    draft.override(overrides)
    spec = draft.judge(check_files=check_files) if draft.readable else None
    if spec is None:
        raise SpecError(read.name, draft.messages(), hint=_HINT)
    return spec


class _Draft:
    """A spec in the making: plain data, where each value came from, and what is wrong."""

    def __init__(self, source: Source) -> None:
        parsed = source.parsed
        self._source = source
        self._origins = {path: _line(number) for path, number in parsed.lines.items()}
        self._found = [(_line(number), problem) for number, problem in parsed.problems]
        self._data: dict[str, Any] = {}
        self.readable = parsed.data is not None or not parsed.problems
        if isinstance(parsed.data, dict):
            self._data = parsed.data
        elif parsed.data is not None:
            self._say(Problem((), f"must hold keys such as `job:`, not {describe(parsed.data)}"))

    def override(self, words: Sequence[str]) -> None:
        """Put the words of the command line over the data."""
        read = [over.parse_override(word) for word in words]
        values = [item for item in read if isinstance(item, over.Override)]
        problems = [item for item in read if isinstance(item, Problem)]
        problems += over.apply(values, self._data, self._forget)
        self._found += [((_AFTER_ALL_LINES, ""), problem) for problem in problems]
        for value in values:
            for length in range(1, len(value.path)):
                self._origins.setdefault(value.path[:length], (_AFTER_ALL_LINES, value.origin))
            self._origins[value.path] = (_AFTER_ALL_LINES, value.origin)

    def judge(self, *, check_files: bool) -> Spec | None:
        """Return the spec if nothing is wrong with it; otherwise keep all that is wrong."""
        self._settle()
        for problem in broken_rules(self._data):
            self._say(problem)
        if check_files:
            for problem in missing_files(self._data):
                self._say(problem)
        try:
            spec = Spec.model_validate(self._data)
        except ValidationError as error:
            for problem in complaints(error):
                self._say(problem)
            return None
        return None if self._found else spec

    def messages(self) -> tuple[str, ...]:
        """Return all mistakes as lines, in the order of the file, each once."""
        lines = []
        for (_, origin), problem in sorted(self._found, key=lambda item: item[0][0]):
            key = origin.removeprefix(over.OVERRIDE_FLAG).strip().partition("=")[0]
            words = (origin, "" if key == problem.where else problem.where, problem.text)
            lines.append(": ".join(word for word in words if word))
        return tuple(dict.fromkeys(lines))

    def _settle(self) -> None:
        """Fill in what depends on where the spec lies: empty sections, its name, its paths."""
        for path in sections():
            self._drop_if_empty(path)
        if self._data.get("name") is None:
            self._data["name"] = self._default_name()
        make_absolute(self._data, self._base_of)
        job = self._data.setdefault("job", {})
        if isinstance(job, dict) and job.get("workdir") is None:
            job["workdir"] = str(self._source.folder)

    def _say(self, problem: Problem) -> None:
        self._found.append((self._origin(problem.path), problem))

    def _origin(self, path: KeyPath) -> tuple[int, str]:
        for length in range(len(path), 0, -1):
            if path[:length] in self._origins:
                return self._origins[path[:length]]
        return _line(None)

    def _forget(self, path: KeyPath) -> None:
        for known in [item for item in self._origins if item[: len(path)] == path]:
            del self._origins[known]

    def _base_of(self, path: KeyPath) -> Path:
        typed = self._origin(path)[1].startswith(over.OVERRIDE_FLAG)
        return Path.cwd() if typed else self._source.folder

    def _drop_if_empty(self, path: KeyPath) -> None:
        """Let `study:` with nothing below it stand for a section of defaults."""
        parent = inside(self._data, path[:-1])
        if path and isinstance(parent, dict) and path[-1] in parent and parent[path[-1]] is None:
            del parent[path[-1]]

    def _default_name(self) -> str:
        job = self._data.get("job")
        named = job if isinstance(job, dict) else {}
        script = named.get("script")
        what = Path(script).stem if isinstance(script, str) else named.get("program")
        words = str(self._source.default_name or what or "dcgan")
        return re.sub(r"[^A-Za-z0-9._-]+", "-", words).strip("-._")[:63] or "study"


def _line(number: int | None) -> tuple[int, str]:
    return (0, "") if number is None else (number, f"line {number}")
