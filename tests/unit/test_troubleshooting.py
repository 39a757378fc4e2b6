"""The messages in docs/troubleshooting.md are those that the code prints."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# What other programs print, whose words are not ours to keep.
FOREIGN = ("[c10d]", "could not select device driver", "[FATAL tini")
# What ours quote of theirs, and names that are filled in.
QUOTED = re.compile(
    r"no route to host|lo, eth0|Address already in use|unresolvable CDI devices"
    r"|container-init binary not found|ERROR: No matching distribution found for"
    r"|Dockerfile|docker(?= does)|podman"
)
_ENTRY = re.compile(r"^`.*(?=\n: )", re.MULTILINE)
# Words that hold digits, slashes, dots or capitals are names and numbers, which differ.
_PLAIN = re.compile(r"[A-Z]?[a-z'-]+|CHANGED")
_AT_A_TIME = 3


def messages() -> Iterator[str]:
    """Yield every message that the document explains."""
    text = (ROOT / "docs" / "troubleshooting.md").read_text()
    for entry in _ENTRY.findall(text):
        for message in re.findall(r"`([^`]+)`", entry):
            if not message.startswith(FOREIGN):
                yield message


@cache
def said_by_the_code() -> str:
    """Return all texts in the sources, what is filled in left out."""
    trees = (ast.parse(path.read_text()) for path in (ROOT / "src").rglob("*.py"))
    constants = (
        node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Constant)
    )
    return "\n".join(node.value for node in constants if isinstance(node.value, str))


def strange_words(message: str) -> list[str]:
    """Return the runs of words in a message that stand nowhere in the sources."""
    strange, run = [], list[str]()
    own = re.sub("([,:;])", r" \1", QUOTED.sub("…", message))
    for word in [*own.split(), "."]:
        if _PLAIN.fullmatch(word):
            run.append(word)
            continue
        for start in range(max(1, len(run) - _AT_A_TIME + 1) if run else 0):
            words = " ".join(run[start : start + _AT_A_TIME])
            if words not in said_by_the_code():
                strange.append(words)
        run = []
    return strange


@pytest.mark.parametrize("message", list(messages()))
def test_every_message_is_printed_by_the_code(message: str) -> None:
    """What a reader searches for is found; only names and numbers differ."""
    assert strange_words(message) == []


def test_a_message_that_nobody_prints_is_noticed() -> None:
    """The check can fail."""
    assert strange_words("the moon is in the wrong phase for 10.0.0.11")
