"""Data sets: found, fetched, verified, and prepared as memory-mapped images.

This package travels to the hosts: it needs nothing but the standard library, except that
Pillow decodes pictures and lmdb reads LSUN, where they are asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from paceline.datasets.catalogue import CATALOGUE, Entry, entry_of
from paceline.datasets.finding import locate
from paceline.datasets.nouns import FetchResult, ImageSet, Part, Progress, Verification
from paceline.datasets.preparing import prepare
from paceline.datasets.verifying import verify

if TYPE_CHECKING:
    from paceline.datasets.fetching import fetch

__all__ = [
    "CATALOGUE",
    "Entry",
    "FetchResult",
    "ImageSet",
    "Part",
    "Progress",
    "Verification",
    "entry_of",
    "fetch",
    "locate",
    "prepare",
    "verify",
]


def __getattr__(name: str) -> object:
    # HTTP and process libraries are a third of the import time, and a trainer needs none.
    if name == "fetch":
        from paceline.datasets.fetching import fetch  # noqa: PLC0415 - only when it is wanted

        return fetch
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
