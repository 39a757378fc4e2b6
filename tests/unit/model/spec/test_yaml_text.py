"""YAML text as plain data with lines, and all mistakes of its form."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.model.spec.yaml_text import parse_yaml


def said(text: str) -> list[tuple[int | None, str, str]]:
    """Return the problems of a text as line, place and words."""
    return [(line, problem.where, problem.text) for line, problem in parse_yaml(text).problems]


def test_values_are_plain_and_know_their_lines() -> None:
    """Scalars follow YAML 1.2; a date stays text; every path has the line of its key."""
    parsed = parse_yaml("a: 1\nb:\n  c: [x, 2.5, true]\n  d: 2026-01-02\ne: yes\nf: ~\n")
    assert parsed.data == {
        "a": 1,
        "b": {"c": ["x", 2.5, True], "d": "2026-01-02"},
        "e": "yes",
        "f": None,
    }
    assert parsed.lines[("b", "d")] == 4
    assert parsed.lines[("b", "c", 1)] == 3
    assert parsed.problems == []


def test_nothing_is_no_data_and_no_problem() -> None:
    """An empty text, or only comments, is a spec of defaults."""
    assert parse_yaml("").data is None
    assert parse_yaml("# nothing\n").problems == []


def test_every_key_that_is_given_twice_is_named() -> None:
    """All repeated keys are reported, with the line of the first; the first value is kept."""
    text = "a: 1\na: 2\nb: {c: 1, c: 2}\n"
    assert said(text) == [
        (2, "a", "is given twice, first in line 1"),
        (3, "b.c", "is given twice, first in line 3"),
    ]
    assert parse_yaml(text).data == {"a": 1, "b": {"c": 1}}


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("a: 1\n\tb: 2", 2, "is indented with a tab; YAML wants spaces"),
        ("a: 1\nb: c: d", 2, ("a colon stands where none can be; look at the indentation, or "
         "quote the value")),
        ("a: 1\nb: [1\nc: 2", 3,
         "is not YAML: expected ',' or ']', but got ':', in what began in line 2"),
        ("a: 1\n---\nb: 2", 2, "is not YAML: found another document, in what began in line 1"),
        ("a: *b", 1, "is not YAML: found undefined alias 'b'"),
        ("a: \x00", 1,
         "is not YAML: unacceptable character #x0000: special characters are not allowed"),
    ],
)  # fmt: skip
def test_syntax_errors_have_a_line_and_words(text: str, line: int, words: str) -> None:
    """What cannot be parsed is said with the line where it cannot."""
    assert said(text) == [(line, "", words)]
    assert parse_yaml(text).data is None


@pytest.mark.parametrize(
    "text",
    ["a: !!python/object/apply:os.system [id]", "a: !!python/name:os.system x", "a: !thing 1"],
)
def test_tags_make_nothing(text: str) -> None:
    """A tag that would build an object is refused and builds nothing."""
    for line, where, words in said(text):
        assert (line, where) == (1, "a")
        assert words.startswith("has a tag that is not understood here: ")


def test_merge_keys_are_followed() -> None:
    """`<<` brings in another mapping; the mapping's own keys go over it."""
    text = "base: &base {x: 1, y: 2}\nmore:\n  <<: *base\n  y: 3\n"
    assert parse_yaml(text).data["more"] == {"x": 1, "y": 3}
    assert said("a:\n  <<: 3\n") == [(2, "a", "can only merge mappings with `<<`")]


MULTIPLYING = "a: &a [x, x]\n" + "".join(
    f"{new}: &{new} [{', '.join([f'*{old}'] * 9)}]\n"
    for old, new in zip("abcdefg", "bcdefgh", strict=True)
)


@pytest.mark.parametrize(
    "text",
    [
        "a: &a [*a]",
        "a: &a {<<: *a}",
        "[" * 5_000,
        "- " * 5_000,
        MULTIPLYING,
    ],
    ids=["holds itself", "merges itself", "deep flow", "deep block", "multiplies"],
)  # fmt: skip
def test_endless_data_are_refused(text: str) -> None:
    """Aliases that hold themselves or multiply end in one sentence."""
    problems = parse_yaml(text).problems
    assert len(problems) == 1
    assert "nested too deeply" in problems[0][1].text


def test_keys_are_words() -> None:
    """A key is taken as it is written; a list cannot be one."""
    assert parse_yaml("1: a\ntrue: b\n").data == {"1": "a", "true": "b"}
    assert said("? [1]\n: 2") == [(1, "", "has a key that is not a word")]


def test_a_tagged_scalar_that_does_not_fit_is_named() -> None:
    """`!!int x` is a mistake of the file and not of ours."""
    assert said("a: !!int x") == [(1, "a", "is not a whole number: x")]


yaml_like = st.text(alphabet="ab1:-[]{}&*!|>'\"%@#?,<~. \n\t", max_size=40)


@settings(deadline=None)
@given(st.one_of(yaml_like, st.text(max_size=40)))
def test_any_text_is_parsed_or_complained_about(text: str) -> None:
    """No text makes the parser fail: there are data, or problems, or neither."""
    parsed = parse_yaml(text)
    assert isinstance(parsed.problems, list)
