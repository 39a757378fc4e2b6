"""The line that makes a shell become a command: any words arrive as they are."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.model.command import Command
from paceline.transports.ssh.script import first_line, quote

TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=40)


@settings(max_examples=50, deadline=None)
@given(words=st.lists(TEXT, min_size=1, max_size=4), value=TEXT)
def test_every_word_and_value_arrives(words: list[str], value: str) -> None:
    """Quotes, newlines and dollars in arguments and variables survive a real shell."""
    show = ("printf", "%s\\0", *words)
    env = {"PL_VALUE": value, "LC_ALL": "C.UTF-8"}
    command = Command(("sh", "-c", '"$@"; printf %s "$PL_VALUE"', "sh", *show), env=env)
    done = subprocess.run(
        ("/bin/sh", "-c", 'IFS= read -r _pl_line && eval "$_pl_line"'),
        input=first_line(command, "TOKEN"),
        capture_output=True,
        check=True,
    )
    expected = "TOKEN\n" + "".join(f"{word}\0" for word in words) + value
    assert done.stdout.decode() == expected
    assert done.stderr.decode().startswith("TOKEN ok ")


def test_the_line_is_one_line() -> None:
    """Whatever a command holds, the shell reads it all at once."""
    command = Command(("a\nb",), env={"X": "c\nd"}, cwd="/e\nf")
    assert first_line(command, "T").count(b"\n") == 1


def test_a_nul_is_refused() -> None:
    """What no process can be given is said before anything is sent."""
    with pytest.raises(ValueError, match="NUL"):
        quote("a\0b")
