"""How an error of ours is said to a person."""

from __future__ import annotations

import sys

from paceline.errors import PacelineError


def complain(error: PacelineError) -> int:
    """Write what happened and what to do next to stderr; return the exit code."""
    sys.stderr.write(f"error: {error}\n")
    if error.hint:
        sys.stderr.write(f"  {error.hint}\n")
    sys.stderr.flush()
    return error.exit_code
