"""The options that several verbs share, declared once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional, TypedDict

import typer

from paceline.errors import UsageError

# typer reads these at run time, on Python 3.10 too: Optional, not `X | None`.
SpecPath = Annotated[
    Optional[Path],
    typer.Argument(metavar="SPEC", help="The spec file; without one, the defaults apply."),
]
Sets = Annotated[
    Optional[list[str]],
    typer.Option(
        "--set", "-s", metavar="KEY=VALUE", help="Change one value, as in -s study.samples=5."
    ),
]
RunId = Annotated[
    Optional[str],
    typer.Argument(metavar="RUN", help="A run's id, or its beginning; else the newest."),
]
SpecOption = Annotated[
    Optional[str],
    typer.Option("--spec", metavar="FILE", help="The spec that names the machines."),
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
    typer.Option("--launcher", help="Who starts the ranks: direct, torchrun or mpirun."),
]
Samples = Annotated[
    Optional[int],
    typer.Option("--samples", min=1, help="How often each configuration is measured."),
]
Iterations = Annotated[
    Optional[int],
    typer.Option("--iterations", min=1, help="Iterations that count, instead of an epoch."),
]
Tensorboard = Annotated[
    Optional[bool],
    typer.Option("--tensorboard", help="Write event files for TensorBoard beside each run."),
]
Detach = Annotated[
    bool, typer.Option("--detach", "-d", help="Return at once; see logs, wait, stop.")
]
Hosts = Annotated[
    Optional[str],
    typer.Option(
        "--hosts",
        metavar="A,B,…",
        help="Machines that answer to SSH, the master first: addresses, or USER@ADDRESS:PORT.",
    ),
]
AcceptKeys = Annotated[
    Optional[bool],
    typer.Option(
        "--accept-new-host-keys",
        help="Trust hosts that are not known yet, and remember their keys.",
    ),
]
Prices = Annotated[
    Optional[Path],
    typer.Option(
        "--prices", metavar="FILE", help="Prices as CSV; else the list prices that come along."
    ),
]
Region = Annotated[
    Optional[str],
    typer.Option("--region", help="Where the prices apply; else the spec's, or us-east-1."),
]
Market = Annotated[
    Optional[str], typer.Option("--market", help="on-demand or spot; else the spec's.")
]
JobEpochs = Annotated[
    float, typer.Option("--epochs", metavar="N", help="How many epochs the real job has.")
]
Budget = Annotated[
    Optional[str],
    typer.Option("--budget", metavar="USD", help="What the job may cost, as in 3usd."),
]
Deadline = Annotated[
    Optional[str],
    typer.Option("--deadline", metavar="TIME", help="How long the job may take, as in 2h."),
]
ClusterName = Annotated[
    Optional[str],
    typer.Argument(
        metavar="[CLUSTER]", help="A cluster's name, or its spec file; else the only one."
    ),
]
OfCluster = Annotated[
    Optional[str],
    typer.Option(
        "--cluster", metavar="NAME", help="A rented cluster; if no hosts are named, the only one."
    ),
]
Keep = Annotated[
    bool, typer.Option("--keep", help="Keep the hosts that are rented for this, until `down`.")
]
WhereRented = Annotated[
    Optional[str],
    typer.Option("--region", help="Where it stands; else where this machine has rented it."),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress on stderr.")]


def cluster(hosts: str | None, accept_keys: bool | None) -> dict[str, object]:
    """Return the flags that name the machines, as `overrides` takes them."""
    if hosts is None and not accept_keys:
        return {}
    named = [word for word in (hosts or "").split(",") if word.strip()]
    return {
        "cluster__provider": "hosts" if hosts is not None else None,
        "cluster__hosts": named if hosts is not None else None,
        "cluster__accept_new_host_keys": accept_keys or None,
    }


def listed(words: str | None) -> tuple[str, ...]:
    """Return the words between commas."""
    return tuple(word.strip() for word in (words or "").split(",") if word.strip())


def whole_numbers(words: str | None) -> tuple[int, ...]:
    """Return the numbers between commas; UsageError where one is none."""
    found = listed(words)
    if not all(word.isdecimal() and int(word) for word in found):
        raise UsageError(f"{words!r} holds more than whole numbers", hint="as in --nodes 1,2")
    return tuple(int(word) for word in found)


class LimitWords(TypedDict):
    """The limits of a job, as the API takes them."""

    budget_usd: float | None
    deadline_s: float | None


def limits(budget: str | None, deadline: str | None) -> LimitWords:
    """Return the limits that words name, as in `3usd` and `2h`."""
    return {
        "budget_usd": None if budget is None else _dollars(budget),
        "deadline_s": None if deadline is None else _seconds(deadline),
    }


def _dollars(words: str) -> float:
    number = words.strip().lower().removeprefix("$").removesuffix("usd").strip()
    try:
        value = float(number)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise UsageError(f"{words!r} is no sum of money", hint="as in --budget 3usd")
    return value


def _seconds(words: str) -> float:
    from paceline.model.spec.durations import parse_duration

    try:
        return parse_duration(words)
    except ValueError as error:
        raise UsageError(f"{words!r} is no time: {error}", hint="as in --deadline 2h") from error


def overrides(sets: list[str] | None, **flags: object) -> tuple[str, ...]:
    """Turn flags that were given into `key=value` words; a dot stands as `__` in their names."""
    from json import dumps

    words = [
        f"{name.replace('__', '.')}={dumps(value)}"
        for name, value in flags.items()
        if value is not None
    ]
    return (*words, *(sets or ()))
