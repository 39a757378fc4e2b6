"""The entry: a command line in, an exit code out."""

from __future__ import annotations

from collections.abc import Sequence

from paceline.errors import PacelineError
from paceline.trainer.complaint import complain
from paceline.trainer.options import parse


def main(argv: Sequence[str]) -> int:
    """Train as one rank, and return the exit code."""
    try:
        options = parse(argv)
    except PacelineError as error:
        return complain(error)
    from paceline.trainer.rank import Run  # noqa: PLC0415 - a wrong flag is said before torch loads

    return Run(options).to_its_end()
