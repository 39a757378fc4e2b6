"""The note beside fetched data: which files there are, their SHA-256, and their source."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from paceline.datasets.catalogue import DataFile

NAME = "paceline-data.json"
_SCHEMA = 1


@dataclass(frozen=True)
class Manifest:
    """What was fetched into a folder."""

    dataset: str
    source: str
    files: tuple[DataFile, ...]
    digests: Mapping[str, str]
    schema: int = _SCHEMA


def write(folder: Path, manifest: Manifest) -> None:
    """Write the note beside the files, whole or not at all."""
    draft = folder / f".{NAME}.new"
    draft.write_text(json.dumps(asdict(manifest), indent=1) + "\n", "utf-8")
    draft.replace(folder / NAME)


def read(folder: Path) -> Manifest | None:
    """Return the note of a folder; None where there is none that can be understood."""
    try:
        data: dict[str, Any] = json.loads((folder / NAME).read_text("utf-8"))
        files = tuple(DataFile(**item) for item in data.pop("files"))
        return Manifest(files=files, **data)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


def digest_of(folder: Path, split: str) -> str | None:
    """Return the digest that a fetched split had."""
    manifest = read(folder)
    return None if manifest is None else manifest.digests.get(split)
