"""Data sets: fetch, verify, list."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from paceline import datasets as sets
from paceline.datasets import FetchResult, Verification

ByteProgress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class DataListing:
    """A data set that has a name, and where it lies on this machine (None: nowhere)."""

    name: str
    description: str
    found: Path | None


def fetch_data(
    name: str, root: Path | str | None = None, *, progress: ByteProgress | None = None
) -> FetchResult:
    """Download a data set, verify it, and lay it out as the trainers read it."""
    return sets.fetch(name, Path(root) if root else None, progress=progress)


def verify_data(name: str, root: Path | str | None = None) -> Verification:
    """Check that a data set is whole and readable."""
    return sets.verify(name, Path(root) if root else None)


def known_datasets() -> tuple[DataListing, ...]:
    """Return the data sets that have a name."""
    return tuple(
        DataListing(name=name, description=entry.description, found=sets.locate(name))
        for name, entry in sets.CATALOGUE.items()
    )
