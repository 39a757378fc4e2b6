"""Data sets: fetch, verify, list."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from paceline import datasets as sets
from paceline.api.completing import complete
from paceline.api.wiring import SpecLike, SystemClock, load, open_store, wire
from paceline.app.delivery import HostData
from paceline.app.delivery import bring_data as bring
from paceline.app.workplace import ends_of, open_workplace
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


def bring_data(
    name: str,
    spec: SpecLike = None,
    *,
    overrides: Sequence[str] = (),
    root: Path | str | None = None,
    progress: ByteProgress | None = None,
) -> tuple[HostData, ...]:
    """Bring a data set to all hosts of a spec, over their own links, and verify it on each.

    It is fetched once, where none of them and not this machine has it.
    """
    loaded = load(spec, overrides)
    sets.entry_of(name)
    place_there = str(root) if root else loaded.data.root

    async def work() -> tuple[HostData, ...]:
        wiring = wire(loaded)
        async with open_workplace(
            wiring.provider, wiring.ground, open_store(), SystemClock()
        ) as place:
            return await bring(ends_of(place), name, place_there, on_bytes=progress)

    return complete(work())


def verify_data(name: str, root: Path | str | None = None) -> Verification:
    """Check that a data set is whole and readable."""
    return sets.verify(name, Path(root) if root else None)


def known_datasets() -> tuple[DataListing, ...]:
    """Return the data sets that have a name."""
    return tuple(
        DataListing(name=name, description=entry.description, found=sets.locate(name))
        for name, entry in sets.CATALOGUE.items()
    )
