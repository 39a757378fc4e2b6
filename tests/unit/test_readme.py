"""The README: it names every verb and every document, and its links lead somewhere."""

from __future__ import annotations

import re

import pytest

from paceline.cli.main import build_app
from tests.fakes.tutorial import ROOT

README = (ROOT / "README.md").read_text()
APP = build_app()
VERBS = [
    *(
        command.name or command.callback.__name__.replace("_", "-")
        for command in APP.registered_commands
        if command.callback is not None
    ),
    *(str(group.name) for group in APP.registered_groups),
]


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_is_named(verb: str) -> None:
    """A newcomer finds each verb in the table."""
    table = "".join(line for line in README.splitlines() if line.startswith("| `paceline"))
    assert re.search(rf"`(paceline )?{verb}\b", table), verb


def test_every_document_is_linked() -> None:
    """Each page of the documents is named at the end, and every link leads somewhere."""
    targets = re.findall(r"\]\(([^)#:]+)\)", README)
    assert [target for target in targets if not (ROOT / target).exists()] == []
    pages = {f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")}
    assert pages - set(targets) == set()
