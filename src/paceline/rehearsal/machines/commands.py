"""Running the programs of this machine that make and take away what a rehearsal needs."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Sequence

from paceline.errors import EnvironmentFault

_WITHIN_S = 60.0


def run(argv: Sequence[str], stdin: str | None = None) -> str:
    """Run a program to its end, and return what it printed; raise if it fails."""
    done = subprocess.run(
        argv, input=stdin, capture_output=True, text=True, timeout=_WITHIN_S, check=False
    )
    if done.returncode != 0:
        raise EnvironmentFault(f"{' '.join(argv)}: {done.stderr.strip()}")
    return done.stdout


def run_all(commands: Iterable[Sequence[str]]) -> None:
    """Run programs one after the other."""
    for command in commands:
        run(command)


def attempt(argv: Sequence[str]) -> bool:
    """Run a program that may fail; tell whether it did well."""
    done = subprocess.run(argv, capture_output=True, timeout=_WITHIN_S, check=False)
    return done.returncode == 0
