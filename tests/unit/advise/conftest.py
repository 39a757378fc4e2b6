"""Launches for the tests of the advice: the published ones, and some made up by a formula."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from paceline.advise.iterations import parse_iterations
from paceline.advise.nouns import EpochTimes, Launch, Machine, Target
from paceline.planning.prices import packaged_prices

DATA = Path(__file__).parents[2] / "data" / "ec2-dcgan-iterations.csv.gz"
HEADER = (
    "study,instance_type,nodes,procs_per_node,batch_size,rank,epoch,iteration,"
    "iterations_per_epoch,seconds"
)


@pytest.fixture(scope="session")
def published() -> tuple[Launch, ...]:
    """The launches of the published file."""
    return parse_iterations(DATA.read_bytes(), source=DATA.name)


@pytest.fixture(scope="session")
def machines() -> Mapping[str, Machine]:
    """What the packaged prices know of the types of one region."""
    return {
        price.instance_type: Machine(price.instance_type, price.vcpus, price.usd_per_hour())
        for price in packaged_prices().in_region()
    }


def launch(
    target: Target, seconds: Sequence[float], *, planned: int | None = None, study: str = "S"
) -> Launch:
    """Return a launch of one epoch with these iterations."""
    times = dict(enumerate(seconds))
    return Launch(study, target, (EpochTimes(0, planned or len(times), times),))


def first(whole: Launch, count: int, epoch: int = 0) -> Launch:
    """Return what a probe of the first iterations of a launch's epoch would have seen."""
    chosen = whole.epochs[epoch]
    seen = {index: value for index, value in chosen.seconds.items() if index < count}
    return replace(whole, epochs=(replace(chosen, seconds=seen),))


def lines(*rows: str) -> bytes:
    """Return a file of iterations."""
    return "\n".join([HEADER, *rows, ""]).encode()
