"""`python -m paceline.datasets fetch|verify|prepare|locate|place|list NAME`: JSON on stdout.

For hosts that have this package and nothing else; people use `paceline data`.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from paceline.datasets import CATALOGUE, fetch, locate, manifest, prepare, verify
from paceline.datasets.nouns import silent
from paceline.datasets.places import fetch_place
from paceline.datasets.verifying import combined_digest
from paceline.errors import DataError, PacelineError

_EVERY_S = 5.0


def main(words: Sequence[str] | None = None) -> int:
    """Do one thing and say its outcome as one JSON object; return the exit code."""
    arguments = _parser().parse_args(words)
    try:
        outcome, code = _do(arguments)
    except PermissionError as error:
        outcome, code = _not_allowed(error), DataError.exit_code
    except PacelineError as error:
        outcome = {"error": type(error).__name__, "message": str(error), "hint": error.hint}
        code = error.exit_code
    sys.stdout.write(json.dumps(outcome, indent=1, default=str) + "\n")
    return code


def _not_allowed(error: PermissionError) -> dict[str, Any]:
    return {
        "error": DataError.__name__,
        "message": f"{error.filename} may not be read by this user",
        "hint": f"give yourself the right to read it: chmod -R u+rX {error.filename}",
    }


def _do(arguments: argparse.Namespace) -> tuple[dict[str, Any], int]:
    progress = silent if arguments.quiet else _Lines()
    name, root = arguments.name, arguments.root
    if arguments.verb == "fetch":
        return asdict(fetch(name, root, progress=progress)), 0
    if arguments.verb == "verify":
        found = verify(name, root, progress=progress)
        return asdict(found), 0 if found.ok else DataError.exit_code
    if arguments.verb == "locate":
        place = locate(name, root)
        if place is None:
            where = f"in {root}" if root else "in the usual places"
            raise DataError(f"there is no {name} {where}")
        return {"name": name, "root": place}, 0
    if arguments.verb == "place":
        return _place(name, root), 0
    if arguments.verb == "prepare":
        prepared = prepare(
            name,
            root,
            split=arguments.split,
            image_size=arguments.image_size,
            channels=arguments.channels,
            count=arguments.count,
            download=arguments.download,
            progress=progress,
        )
        return asdict(prepared), 0
    return {entry.name: entry.description for entry in CATALOGUE.values()}, 0


def _place(name: str, root: Path | None) -> dict[str, Any]:
    """Say where a data set lies or belongs, and the digest that was noted when it was fetched."""
    found = locate(name, root)
    note = None if found is None else manifest.read(found)
    return {
        "name": name,
        "root": None if found is None else found.absolute(),
        "place": (root.expanduser() if root else fetch_place(name)).absolute(),
        "digest": None if note is None else combined_digest(note.digests),
    }


class _Lines:
    """Says on stderr what is being done: at each new step, and every few seconds."""

    def __init__(self) -> None:
        self._what = ""
        self._last_s = 0.0

    def __call__(self, what: str, done: int, total: int) -> None:
        now_s = time.monotonic()
        if what == self._what and now_s - self._last_s < _EVERY_S:
            return
        self._what, self._last_s = what, now_s
        share = f" {done / total:.0%}" if total else ""
        sys.stderr.write(f"{what}{share}\n")
        sys.stderr.flush()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m paceline.datasets", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    for verb, help_text in (
        ("fetch", "download a data set and verify it"),
        ("verify", "look through a data set; the digest is what hosts compare"),
        ("prepare", "make the raw images that a trainer maps into memory"),
        ("locate", "say where a data set lies"),
        ("place", "say where a data set lies or belongs"),
        ("list", "say which data sets there are"),
    ):
        _add_arguments(verbs.add_parser(verb, help=help_text), verb)
    return parser


def _add_arguments(parser: argparse.ArgumentParser, verb: str) -> None:
    parser.set_defaults(name=None, root=None)
    parser.add_argument("--quiet", action="store_true", help="no progress on stderr")
    if verb == "list":
        return
    parser.add_argument("name", help="such as cifar10, mnist, fashion-mnist, folder, fake")
    parser.add_argument("--root", type=Path, help="the folder of the data")
    if verb == "prepare":
        parser.add_argument("--split", default="train", choices=("train", "test"))
        parser.add_argument("--image-size", type=int, help="side of pictures and generated images")
        parser.add_argument("--channels", type=int, help="1 for grey, 3 for colour")
        parser.add_argument("--count", type=int, help="no more images than this")
        parser.add_argument("--download", action="store_true", help="fetch it if it is not there")


if __name__ == "__main__":
    sys.exit(main())
