"""The entry: a command line in, an exit code out."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from paceline.errors import MissingProgram, PacelineError
from paceline.trainer.complaint import complain
from paceline.trainer.options import Options, parse

if TYPE_CHECKING:
    from paceline.trainer.rank import Run


def main(argv: Sequence[str]) -> int:
    """Train as one rank, and return the exit code."""
    try:
        options = parse(argv)
        # A checkpoint may be asked for before there is anything to keep; that must kill nobody.
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        run = _load(options)
    except PacelineError as error:
        return complain(error)
    return run.to_its_end()


def _load(options: Options) -> Run:
    """Load torch, which takes seconds: a wrong flag has been said by now."""
    try:
        from paceline.trainer.rank import Run  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] == "paceline":
            raise
        raise MissingProgram(
            f"this Python has no {error.name}", hint=f"{sys.executable} -m pip install torch"
        ) from error
    return Run(options)
