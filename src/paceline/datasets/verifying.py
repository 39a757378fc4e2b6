"""A look at a whole data set: its structure, its checksums, and one digest to compare."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from paceline.datasets import fake, folder, lsun, manifest
from paceline.datasets.cache import Draft, Recipe
from paceline.datasets.catalogue import Entry, entry_of
from paceline.datasets.finding import SPLITS, holds, locate, recipe_in
from paceline.datasets.images import looks_encoded
from paceline.datasets.nouns import Part, Progress, Verification, silent
from paceline.datasets.recipes import Wish
from paceline.errors import DataError

_BLOCK = 1 << 20
_NAMED = 5


class _Nowhere(io.RawIOBase):
    """Takes what is written and keeps nothing."""

    def writable(self) -> bool:
        return True

    def write(self, data: object, /) -> int:
        return memoryview(data).nbytes  # type: ignore[arg-type]


def verify(
    name: str, root: Path | None = None, *, progress: Progress | None = None
) -> Verification:
    """Look through a data set; nothing is written, and what is wrong is listed, not raised.

    `digest` is the same on every host that has the same images and labels, in whichever form
    their files are. (Trees of pictures and databases are compared file by file.)
    """
    entry = entry_of(name)
    tell = silent if progress is None else progress
    if entry.form == "generated":
        parts = tuple(_read_part(fake.recipe(Wish(entry, split)), entry, tell) for split in SPLITS)
        return Verification(
            entry.name, None, ok=True, digest=combined(parts), source="generated", parts=parts
        )
    place = locate(entry.name, root)
    if place is None or (root is not None and place != Path(root).expanduser()):
        where = "the usual places" if root is None else str(root)
        reason = f"{entry.title} is not in {where}"
        return Verification(
            entry.name, None, ok=False, digest="", source="nothing found", problems=(reason,)
        )
    return verify_place(entry, place, tell)


def verify_place(entry: Entry, place: Path, progress: Progress = silent) -> Verification:
    """Look through a data set that lies in a folder."""
    parts: list[Part] = []
    problems = list(_against_manifest(place))
    for split in SPLITS:
        try:
            part = _part(entry, place, split, progress)
        except (DataError, OSError) as error:
            problems.append(str(error))
            continue
        if part is not None:
            parts.append(part)
    if not parts and not problems:
        problems.append(f"{place} holds no images of {entry.title}")
    return Verification(
        name=entry.name,
        root=place,
        ok=not problems,
        digest=combined(parts) if not problems else "",
        source=_said(entry, place, parts),
        parts=tuple(parts),
        problems=tuple(problems),
    )


def combined(parts: Iterable[Part]) -> str:
    """Return one digest for all splits."""
    return combined_digest({part.split: part.digest for part in parts})


def combined_digest(digests: Mapping[str, str]) -> str:
    """Return one digest for the digests of all splits."""
    lines = [f"{split} {digest}" for split, digest in sorted(digests.items())]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def sha256_of(path: Path, progress: Progress = silent) -> str:
    """Return the SHA-256 of a file."""
    digest = hashlib.sha256()
    size, done = path.stat().st_size, 0
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
            done += len(block)
            progress(f"reading {path.name}", done, size)
    return digest.hexdigest()


def _part(entry: Entry, place: Path, split: str, progress: Progress) -> Part | None:
    if not holds(entry, place, (split,)):
        return None
    if entry.form == "folder":
        return _tree_part(entry, place, split, progress)
    if entry.form == "lmdb":
        return _database_part(place, split, progress)
    return _read_part(recipe_in(place, Wish(entry, split)), entry, progress)


def _read_part(recipe: Recipe, entry: Entry, progress: Progress) -> Part:
    nowhere = io.BufferedWriter(_Nowhere())
    draft = Draft(nowhere, nowhere, lambda _, done, of: progress("verifying images", done, of))
    contents = recipe.write(draft)
    digest = draft.digest(contents)
    published = entry.digests.get(recipe.split)
    return Part(
        split=recipe.split,
        count=draft.count,
        shape=(contents.channels, contents.height, contents.width),
        classes=len(contents.classes),
        digest=digest,
        official=None if published is None else digest == published,
    )


def _tree_part(entry: Entry, place: Path, split: str, progress: Progress) -> Part | None:
    found = folder.find(place, split, entry.name)
    if found is None:
        return None
    digest = hashlib.sha256()
    odd: list[str] = []
    for number, name in enumerate(found.names):
        content = (found.base / name).read_bytes()
        if not looks_encoded(content):
            odd.append(name)
        digest.update(f"{name}\0{hashlib.sha256(content).hexdigest()}\n".encode())
        progress("verifying images", number + 1, len(found.names))
    if odd:
        raise DataError(
            f"{len(odd)} of {len(found.names)} files in {found.base} do not begin like pictures:"
            f" {', '.join(odd[:_NAMED])}"
        )
    return Part(split, len(found.names), None, len(found.classes), digest.hexdigest())


def _database_part(place: Path, split: str, progress: Progress) -> Part | None:
    found = lsun.find(place, split)
    if found is None:
        return None
    count = lsun.count(found)
    lines = (
        f"{category} {sha256_of(path, progress)}"
        for category, path in zip(found.categories, found.files)
    )
    digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    return Part(split, count, None, len(found.categories), digest)


def _against_manifest(place: Path) -> Iterator[str]:
    note = manifest.read(place)
    for file in note.files if note is not None else ():
        path = place / file.name
        if not path.is_file():
            yield f"{path} is missing"
        elif path.stat().st_size != file.size_bytes:
            yield f"{path} has {path.stat().st_size} bytes; {file.size_bytes} were fetched"
        elif sha256_of(path) != file.sha256:
            yield f"{path} is not what was fetched: its SHA-256 differs"


def _said(entry: Entry, place: Path, parts: Iterable[Part]) -> str:
    words = [f"{part.count:,} {part.split}" for part in parts]
    judged = [part.official for part in parts if part.official is not None]
    if judged and all(judged):
        title = f"{entry.title} as published"
    elif judged:
        title = f"images in the format of {entry.title}"
    else:
        title = entry.title
    return f"{title} ({' + '.join(words) or 'nothing readable'}), in {place}"
