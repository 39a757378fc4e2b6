"""The tutorials: translations say the same, and every line is one that Paceline understands."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path

import pytest
from typer.main import get_command

from paceline.cli.main import build_app
from tests.fakes.tutorial import ROOT, STORIES, commands_of

PAGES = sorted(path for path in STORIES.glob("*.md") if path.stem != "README")
ENGLISH = [page for page in PAGES if page.suffixes == [".md"]]
TRANSLATED = [page for page in PAGES if page not in ENGLISH]
LINK = re.compile(r"\]\(([^)#:]+)[^)]*\)")


def calls_of(command: str) -> list[list[str]]:
    """Return the words of each call of paceline in a line that a shell would take apart."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    calls: list[list[str]] = []
    open_call = False
    for word in lexer:
        if word == "paceline":
            calls.append([])
            open_call = True
        elif set(word) <= set("|&;<>()"):
            open_call = False
        elif open_call:
            calls[-1].append(word)
    return calls


def test_a_shells_words_are_left_out() -> None:
    """What redirects, joins or pipes belongs to the shell."""
    line = "nohup paceline study 'a b' -s x=1 > output 2>&1 && paceline ls | head -1"
    assert [call[:4] for call in calls_of(line)] == [["study", "a b", "-s", "x=1"], ["ls"]]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_line_is_understood(page: Path) -> None:
    """Each verb of the page exists, and so does each of its options."""
    calls = [call for command in commands_of(page) for call in calls_of(command)]
    assert calls
    for words in calls:
        understand(words)


@pytest.mark.parametrize("words", [("stduy",), ("study", "--smaples", "3"), ("study", "--samples")])
def test_a_line_that_has_gone_stale_is_found(words: tuple[str, ...]) -> None:
    """A verb or an option that is no more, or lacks its value, is not understood."""
    with pytest.raises(Exception, match=r"[Nn]o such|[Rr]equires"):
        understand(words)


def understand(words: Sequence[str]) -> None:
    """Parse the words of a call as the program does, and stop before anything happens."""
    group = get_command(build_app())
    with group.make_context("paceline", list(words)) as context:
        given = [*context._protected_args, *context.args]
        _, verb, rest = group.resolve_command(context, given)  # type: ignore[attr-defined]
        verb.make_parser(context).parse_args(list(rest))


@pytest.mark.parametrize("page", TRANSLATED, ids=lambda page: page.stem)
def test_a_translation_has_the_same_commands(page: Path) -> None:
    """A reader of any language types the same lines in the same order."""
    original = page.with_name(f"{page.name.partition('.')[0]}.md")
    assert commands_of(page) == commands_of(original)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_a_page_names_is_there(page: Path) -> None:
    """Its links lead somewhere, and the examples that its commands name exist."""
    for target in LINK.findall(page.read_text()):
        assert (page.parent / target).exists(), target
    for command in commands_of(page):
        for example in re.findall(r"examples/[\w./-]+", command):
            assert (ROOT / example).exists(), example


def test_the_stories_have_their_languages() -> None:
    """Each story that is promised in another language is there in it, and listed."""
    index = (STORIES / "README.md").read_text()
    assert all(f"({page.name})" in index for page in PAGES)
