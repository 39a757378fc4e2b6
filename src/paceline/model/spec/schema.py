"""The spec described: a JSON Schema for editors, and the table of every key for people."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from paceline.model.spec.complaints import sections
from paceline.model.spec.rules import Path as KeyPath
from paceline.model.spec.spec import Spec

SCHEMA_FILE = "spec.schema.json"
REFERENCE_FILE = "spec.md"
BEGIN = "<!-- every key: written by `python -m paceline.model.spec docs` -->"
END = "<!-- end of every key -->"


def spec_json_schema() -> dict[str, Any]:
    """Return the JSON Schema of a spec."""
    schema = Spec.model_json_schema()
    # Editors show titles above descriptions; these would only repeat the keys.
    for part in (schema, *schema["$defs"].values()):
        part.pop("title", None)
        for field in part["properties"].values():
            field.pop("title", None)
    dialect = "https://json-schema.org/draft/2020-12/schema"
    return {"$schema": dialect, "title": "Paceline spec", **schema}


def schema_text() -> str:
    """Return the text of the schema's file."""
    return json.dumps(spec_json_schema(), indent=2, ensure_ascii=False) + "\n"


def reference_text() -> str:
    """Return a Markdown table of the keys of each section."""
    return "\n".join(_reference_lines())


def write_docs(folder: Path) -> None:
    """Write the schema, and the tables between their marks in the reference."""
    (folder / SCHEMA_FILE).write_text(schema_text(), encoding="utf-8")
    page = folder / REFERENCE_FILE
    head, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    tail = rest.partition(END)[2]
    page.write_text(f"{head}{BEGIN}\n{reference_text()}\n{END}{tail}", encoding="utf-8")


def _reference_lines() -> Iterator[str]:
    definitions = spec_json_schema()["$defs"]
    for path, model in sorted(sections().items(), key=lambda item: _place(item[0])):
        schema = spec_json_schema() if not path else definitions[model.__name__]
        title = ".".join(str(part) for part in path)
        yield ""
        yield f"### `{title}`" if path else "### At the top"
        yield ""
        yield str(schema["description"])
        yield ""
        yield "| key | value | default | meaning |"
        yield "| --- | --- | --- | --- |"
        for name, field in schema["properties"].items():
            yield _row((*path, name), field)
    yield ""


def _place(path: KeyPath) -> tuple[int, ...]:
    """Return where a section stands in the file: that of its keys in their models."""
    known = sections()
    return tuple(
        list(known[path[:depth]].model_fields).index(str(part)) for depth, part in enumerate(path)
    )


def _row(path: KeyPath, field: dict[str, Any]) -> str:
    section = ".".join(str(part) for part in path)
    anchor = section.replace(".", "")  # as the usual renderers make them of a heading
    refers = any("$ref" in item for item in field.get("anyOf", [field]))
    kind = f"a section: see [`{section}`](#{anchor})" if refers else _kind(field)
    default = field.get("default")
    shown = f"`{json.dumps(default)}`" if default is not None else ""
    words = (f"`{path[-1]}`", kind, shown, field["description"])
    return f"| {' | '.join(word.replace('|', chr(92) + '|') for word in words)} |"


def _kind(field: dict[str, Any]) -> str:
    options = [item for item in _options(field) if item.get("type") != "null"]
    if any("pattern" in item for item in options):
        return "duration"
    return " or ".join(dict.fromkeys(_one_kind(item) for item in options))


def _options(field: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for item in field.get("anyOf", [field]):
        yield from _options(item) if "anyOf" in item else (item,)


def _one_kind(item: dict[str, Any]) -> str:
    if "const" in item:
        return f"`{item['const']}`"
    if "enum" in item:
        return ", ".join(f"`{word}`" for word in item["enum"])
    kind = item.get("type")
    if isinstance(kind, list):
        return "value"
    if item.get("format") == "path":
        return "path"
    words = {
        "array": "list",
        "integer": "whole number",
        "number": "number",
        "string": "text",
        "boolean": "true or false",
        "object": "keys and values",
    }
    return words[str(kind)]
