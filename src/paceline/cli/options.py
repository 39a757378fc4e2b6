"""The options that several verbs share, declared once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

# typer reads these at run time, on Python 3.10 too: Optional, not `X | None`.
SpecPath = Annotated[
    Optional[Path],
    typer.Argument(metavar="[SPEC]", help="The spec file; without one, the defaults apply."),
]
Sets = Annotated[
    Optional[list[str]],
    typer.Option(
        "--set", "-s", metavar="KEY=VALUE", help="Change one value, as in -s study.samples=5."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print facts as JSON.")]
Name = Annotated[
    Optional[str],
    typer.Option("--name", help="The name that results bear."),
]
Results = Annotated[
    Optional[Path],
    typer.Option("--results", metavar="FOLDER", help="Where results go: ./paceline-results."),
]
Procs = Annotated[
    Optional[int],
    typer.Option("--procs-per-node", "-p", min=1, help="Processes on each host."),
]
BatchSize = Annotated[
    Optional[int],
    typer.Option("--batch-size", "-b", min=1, help="Batch size of each process."),
]
Launcher = Annotated[
    Optional[str],
    typer.Option("--launcher", help="Who starts the ranks: direct or torchrun."),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress on stderr.")]


def overrides(sets: list[str] | None, **flags: object) -> tuple[str, ...]:
    """Turn flags that were given into `key=value` words; a dot stands as `__` in their names."""
    from json import dumps

    words = [
        f"{name.replace('__', '.')}={dumps(value)}"
        for name, value in flags.items()
        if value is not None
    ]
    return (*words, *(sets or ()))
