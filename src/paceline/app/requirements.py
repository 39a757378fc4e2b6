"""A user's requirements as one text that can be read on another machine."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from paceline.errors import UsageError

_FOLLOWED = re.compile(r"(-r|--requirement|-c|--constraint)[ =]*(\S+)")
_PATH = re.compile(
    r"(-e\b|--editable\b|file:|\.{0,2}/|~)|(?!\w+://|\S+\s*@)\S*\.(whl|zip|tar\.gz)$"
)
_DEEPEST = 10


@dataclass(frozen=True)
class Requirements:
    """What is to be installed, and what only limits the choice."""

    requirements: str = ""
    constraints: str = ""


def read_requirements(path: Path | None, packages: Sequence[str]) -> Requirements:
    """Return the text of a file with all that it includes, and the packages that stand beside."""
    found: dict[str, list[str]] = {"-r": [], "-c": []}
    for kind, line in _lines(path, "-r", 0) if path is not None else ():
        found[kind].append(line)
    wanted = [*found["-r"], *packages]
    return Requirements("".join(f"{line}\n" for line in wanted), "\n".join(found["-c"]))


def _lines(path: Path, kind: str, depth: int) -> Iterator[tuple[str, str]]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"the requirements {path} cannot be read: {error}") from error
    for number, line in enumerate(text.replace("\\\n", " ").splitlines(), start=1):
        bare = re.sub(r"(^|\s)#.*$", "", line).strip()
        if not bare:
            continue
        included = _FOLLOWED.fullmatch(bare)
        if included and depth < _DEEPEST:
            inner = "-c" if kind == "-c" or included[1] in {"-c", "--constraint"} else "-r"
            yield from _lines(path.parent / included[2], inner, depth + 1)
        elif _PATH.match(bare):
            raise UsageError(
                f"{path}:{number}: {bare} is a path, which no host has",
                hint="build a wheel of it (`pip wheel --no-deps --wheel-dir wheels PATH`), name "
                "the package instead of the path, and say `wheels: FOLDER`",
            )
        else:
            yield kind, bare
