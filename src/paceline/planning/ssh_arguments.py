"""Arguments for the ssh client that people have written down: which host they lead through."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

_WITH_VALUE = frozenset("BbcDEeFIiJLlmOopQRSWw")


def jump_in(arguments: str, where: str) -> str | None:
    """Return the jump host that arguments for ssh name; None if there is none.

    What else they say is left to the user's ssh config. Raises ValueError for what leads through
    something that is no SSH server.
    """
    try:
        for flag, value in _options(shlex.split(arguments)):
            if flag == "J":
                return value
            key, rest = _setting(value) if flag == "o" else ("", "")
            if key == "proxyjump":
                return None if rest == "none" else rest
            if key == "proxycommand":
                return _leads_through(rest)
    except ValueError as error:
        raise ValueError(f"{where} is not understood: {error}") from error
    return None


def _setting(option: str) -> tuple[str, str]:
    """Return name and value of `NAME=VALUE` or `NAME VALUE`."""
    name, *value = re.split(r"[=\s]", option.strip(), maxsplit=1)
    return name.lower(), "".join(value).strip()


def _options(words: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the options of ssh with their values; what is none comes with an empty flag."""
    rest = iter(words)
    for word in rest:
        flag = word[1:2] if word.startswith("-") else ""
        if flag in _WITH_VALUE and flag:
            yield flag, word[2:] or next(rest, "")
        elif not flag:
            yield "", word


def _leads_through(command: str) -> str | None:
    """Return the host through which `ssh -W %h:%p HOST` leads."""
    if command in ("", "none"):
        return None
    program, *words = shlex.split(command)
    found = dict(reversed([*_options(words)]))
    if program.rpartition("/")[2] != "ssh" or "" not in found or "W" not in found:
        raise ValueError("write `jump=USER@HOST`, or put its ProxyCommand into your ssh config")
    at = f"{found['l']}@{found['']}" if "l" in found else found[""]
    return f"{at}:{found['p']}" if "p" in found else at
