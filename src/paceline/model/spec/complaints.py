"""What pydantic finds wrong, in plain words: what must be, what is, and the nearest right word."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from functools import partial
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from paceline.model.spec.rules import Path, Problem
from paceline.model.spec.spec import RULES_ERROR, Spec

_LONGEST_VALUE = 60
_QUOTED = re.compile(r"'([^']*)'")
_NAME_PARTS = 2


def complaints(error: ValidationError) -> Iterator[Problem]:
    """Yield one problem for each thing that pydantic has found."""
    for details in error.errors(include_url=False):
        if not _said_elsewhere(details):
            path = tuple(part for part in details["loc"] if part != "[key]")
            yield Problem(path, _text(details, path))


def describe(value: object) -> str:
    """Return a value as a person would name it."""
    if value is None:
        return "nothing"
    if isinstance(value, Mapping):
        return "a section with keys"
    if isinstance(value, (list, tuple)):
        return "a list" if value else "an empty list"
    if isinstance(value, (bool, str)):
        return _shortened(json.dumps(value, ensure_ascii=False))
    return _number(value) if isinstance(value, (int, float)) else f"a {type(value).__name__}"


def sections() -> dict[Path, type[BaseModel]]:
    """Return the model of every section by its path; the spec itself is at ()."""
    found: dict[Path, type[BaseModel]] = {(): Spec}
    todo: list[tuple[Path, type[BaseModel]]] = [((), Spec)]
    while todo:
        path, model = todo.pop()
        for name, field in model.model_fields.items():
            kinds = [field.annotation, *get_args(field.annotation)]
            for kind in kinds:
                if isinstance(kind, type(BaseModel)):
                    here = (*path, name)
                    found[here] = kind
                    todo.append((here, kind))
    return found


def _said_elsewhere(details: ErrorDetails) -> bool:
    # The rules are checked by themselves; a list is not too short because its items are wrong.
    return details["type"] == RULES_ERROR or (
        details["type"] == "too_short" and bool(details["input"])
    )


def _text(details: ErrorDetails, path: Path) -> str:
    kind, value = details["type"], details["input"]
    context: Mapping[str, Any] = details.get("ctx", {})
    if kind == "extra_forbidden":
        return _unknown_key(path)
    if kind == "literal_error":
        return _not_one_of(str(context["expected"]), value)
    if kind == "string_type":
        return _not_text(path, value)
    if kind == "value_error":
        must = str(context["error"])
        return must + _but_is(path, value) if must.startswith("must be") else must
    if kind in _PLAIN:
        return _PLAIN[kind](context) + _but_is(path, value)
    return details["msg"][:1].lower() + details["msg"][1:]


def _not_text(path: Path, value: object) -> str:
    quotable = isinstance(value, (int, float)) and not _private(path)
    quote = f'; write it in quotes: "{describe(value)}"' if quotable else ""
    return f"must be text{_but_is(path, value)}{quote}"


def _bound(words: str, name: str, context: Mapping[str, Any]) -> str:
    limit = context[name]
    return f"must be {words} {limit:,}" if isinstance(limit, int) else f"must be {words} {limit:g}"


def _fixed(words: str, _context: Mapping[str, Any]) -> str:
    return words


_SECTION_WORDS = "must be a section with keys of its own"
_LIST_WORDS = "must be a list such as [a, b]"
_PLAIN: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "too_short": partial(_fixed, "must be a list of at least one"),
    "int_type": partial(_fixed, "must be a whole number"),
    "int_parsing_size": partial(_fixed, "must be a smaller number"),
    "float_type": partial(_fixed, "must be a number"),
    "finite_number": partial(_fixed, "must be a finite number"),
    "bool_type": partial(_fixed, "must be true or false"),
    "greater_than_equal": partial(_bound, "at least", "ge"),
    "greater_than": partial(_bound, "more than", "gt"),
    "less_than_equal": partial(_bound, "at most", "le"),
    "model_type": partial(_fixed, _SECTION_WORDS),
    "mapping_type": partial(_fixed, _SECTION_WORDS),
    "dict_type": partial(_fixed, _SECTION_WORDS),
    "tuple_type": partial(_fixed, _LIST_WORDS),
    "list_type": partial(_fixed, _LIST_WORDS),
}


def _but_is(path: Path, value: object) -> str:
    return "" if _private(path) else f", not {describe(value)}"


def _private(path: Path) -> bool:
    # A value of the environment may be a secret, whatever is wrong with it.
    return path[1:_NAME_PARTS] == ("env",)


def _unknown_key(path: Path) -> str:
    *parent, key = path
    known = sections()
    section = tuple(part for part in parent if not isinstance(part, int))
    here = list(known[section].model_fields) if section in known else []
    near = get_close_matches(str(key), here, n=1)
    if near:
        return f"unknown key; did you mean {near[0]}?"
    elsewhere = [(*place, key) for place, model in known.items() if key in model.model_fields]
    if elsewhere:
        return f"unknown key here; did you mean {Problem(elsewhere[0], '').where}?"
    if parent == ["job"]:
        return "unknown key; an argument of the job goes under job.args"
    return f"unknown key; there are: {', '.join(here)}"


def _not_one_of(expected: str, value: object) -> str:
    words = _QUOTED.findall(expected)
    must = f"must be {words[0]}" if len(words) == 1 else f"must be one of {', '.join(words)}"
    near = get_close_matches(value.lower(), words, n=1) if isinstance(value, str) else []
    guess = f"; did you mean {near[0]}?" if near and len(words) > 1 else ""
    return f"{must}, not {describe(value)}{guess}"


def _number(value: float) -> str:
    try:
        return _shortened(repr(value))
    except ValueError:  # Python refuses to write out a number of thousands of digits
        return "a very large number"


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST_VALUE else f"{text[: _LONGEST_VALUE - 1]}…"
