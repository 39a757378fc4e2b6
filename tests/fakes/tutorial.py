"""A tutorial as a list of commands, so that tests run what its readers copy."""

from __future__ import annotations

import shlex
from pathlib import Path

STORIES = Path(__file__).resolve().parents[2] / "docs" / "stories"
_PROMPT = "$ "
_MORE = "\\"


class Tutorial:
    """The commands of a page, each of which a test has to account for."""

    def __init__(self, name: str) -> None:
        self.commands = commands_of(STORIES / f"{name}.md")
        self._left = list(self.commands)

    def command(self, beginning: str, **instead: str) -> str:
        """Return the next command that begins like this, with other words in place of the page's.

        `instead` names what a test must do differently: an underscore stands for what is no
        letter, digit or underscore, so `ADDRESS_1="10.0.0.1"` is for the reader's own values.
        """
        found = next((line for line in self._left if line.startswith(beginning)), None)
        assert found is not None, f"the tutorial has no {beginning!r} (any more) in {self._left}"
        self._left.remove(found)
        for old, new in instead.items():
            assert old in found, f"the tutorial's {found!r} has no {old}"
            found = found.replace(old, new)
        return found

    def skip(self, beginning: str, why: str) -> None:
        """Leave out a command that cannot be run in a test, for a reason."""
        assert why
        self.command(beginning)

    def expect_all_used(self) -> None:
        """Fail where the page has commands that no test has run."""
        assert self._left == []


def commands_of(page: Path) -> list[str]:
    """Return the commands of a page's console blocks, continued lines joined."""
    found: list[str] = []
    inside = going_on = False
    for line in page.read_text().splitlines():
        if line.startswith("```"):
            inside, going_on = line == "```console", False
        elif inside and going_on:
            found[-1] = f"{found[-1].removesuffix(_MORE).rstrip()} {line.strip()}"
            going_on = line.endswith(_MORE)
        elif inside and line.startswith(_PROMPT):
            found.append(line.removeprefix(_PROMPT).partition("   #")[0].rstrip())
            going_on = line.endswith(_MORE)
    return found


def verbs_of(command: str) -> list[list[str]]:
    """Return the words of each call of paceline in a command, without what the shell takes."""
    calls: list[list[str]] = []
    for part in shlex.split(command, comments=True):
        if part == "paceline":
            calls.append([])
        elif part in {"&&", "|", ">", "&", ";", "||"}:
            calls.append(["-"])
        elif calls and calls[-1] != ["-"]:
            calls[-1].append(part)
    return [call for call in calls if call != ["-"]]
