"""The spec described: schema and reference are those of the models."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from paceline.errors import SpecError
from paceline.model.spec import load_spec, spec_json_schema
from paceline.model.spec.complaints import sections
from paceline.model.spec.schema import (
    BEGIN,
    END,
    REFERENCE_FILE,
    SCHEMA_FILE,
    reference_text,
    schema_text,
    write_docs,
)

DOCS = Path(__file__).parents[4] / "docs"
RENEW = "run `python -m paceline.model.spec docs`"


def test_the_exported_schema_is_current() -> None:
    """The file that editors read is the schema of the models."""
    assert (DOCS / SCHEMA_FILE).read_text(encoding="utf-8") == schema_text(), RENEW


def test_the_reference_is_current() -> None:
    """The tables of keys are those of the models."""
    page = (DOCS / REFERENCE_FILE).read_text(encoding="utf-8")
    assert page.partition(BEGIN)[2].partition(END)[0] == f"\n{reference_text()}\n", RENEW


def test_every_key_is_in_the_reference() -> None:
    """No key of any section is left out of the page."""
    page = (DOCS / REFERENCE_FILE).read_text(encoding="utf-8")
    for path, model in sections().items():
        title = f"### `{'.'.join(str(part) for part in path)}`" if path else "### At the top"
        table = page.partition(title)[2].partition("\n### ")[0]
        for name in model.model_fields:
            assert f"| `{name}` |" in table, (title, name)


def test_the_examples_of_the_page_are_true(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its first spec loads, and its second gets exactly the answer that is printed."""
    monkeypatch.chdir(tmp_path)
    page = (DOCS / REFERENCE_FILE).read_text(encoding="utf-8")
    good, bad, *_ = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    answer, *_ = re.findall(r"```text\n(.*?)\n```", page, re.DOTALL)
    assert load_spec(good).name == "dcgan-scaling"
    Path("spec.yaml").write_text(bad, encoding="utf-8")
    with pytest.raises(SpecError) as caught:
        load_spec("spec.yaml")
    assert str(caught.value) == answer


def test_every_key_is_described() -> None:
    """Editors can explain every key, refuse others, and are not told an address of the schema."""
    schema = spec_json_schema()
    assert "$id" not in schema
    assert schema["title"] == "Paceline spec"
    for part in (schema, *schema["$defs"].values()):
        assert part["description"]
        assert part["additionalProperties"] is False
        for name, field in part["properties"].items():
            assert field.get("description"), name


def test_the_schema_is_plain_json() -> None:
    """It survives being written and read."""
    assert json.loads(schema_text()) == spec_json_schema()


def test_writing_the_docs_changes_nothing_that_is_current(tmp_path: Path) -> None:
    """The command that the marks name makes the files that are there."""
    shutil.copy(DOCS / REFERENCE_FILE, tmp_path)
    write_docs(tmp_path)
    for name in (REFERENCE_FILE, SCHEMA_FILE):
        assert (tmp_path / name).read_bytes() == (DOCS / name).read_bytes()
