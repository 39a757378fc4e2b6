"""CIFAR-10 and data in its format: binary records, python pickles, or an archive of either."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from paceline.datasets import archives, safepickle
from paceline.datasets.cache import Contents, Draft, Recipe
from paceline.datasets.recipes import Chunk, Wish, class_names, limited, origin, state_of
from paceline.errors import DataError

SIDE = 32
PIXELS = 3 * SIDE * SIDE
RECORD = 1 + PIXELS
BATCH = 10_000
_BINARY = {"train": re.compile(r"data_batch_(\d+)\.bin"), "test": re.compile(r"test_batch\.bin")}
_PYTHON = {"train": re.compile(r"data_batch_(\d+)"), "test": re.compile(r"test_batch")}
_NAMES = {"binary": "batches.meta.txt", "python": "batches.meta"}
_ARCHIVE = re.compile(r"cifar-10-(binary|python)\.(tar|tgz|tar\.gz|tar\.xz|tar\.bz2)")
_FOLDERS = (".", "cifar-10-batches-bin", "cifar-10-batches-py")
_MAX_PICKLE_BYTES = 4 << 30
_MOST_LABELS = 1 << 31


@dataclass(frozen=True)
class Found:
    """The files of one split: `form` is binary, python or archive."""

    form: str
    files: tuple[Path, ...]
    names: Path | None = None


def find(root: Path, split: str) -> Found | None:
    """Return the files of a split below a folder, the cheapest form to read first."""
    for form, patterns in (("binary", _BINARY), ("python", _PYTHON)):
        for folder in (root / name for name in _FOLDERS):
            files = _matching(folder, patterns[split])
            if files:
                names = folder / _NAMES[form]
                return Found(form, files, names if names.is_file() else None)
    archive = _matching(root, _ARCHIVE)
    return Found("archive", archive[:1]) if archive else None


def _matching(folder: Path, pattern: re.Pattern[str]) -> tuple[Path, ...]:
    if not folder.is_dir():
        return ()
    hits = [path for path in folder.iterdir() if pattern.fullmatch(path.name) and path.is_file()]
    return tuple(sorted(hits, key=lambda path: _order(path.name)))


def _order(name: str) -> tuple[int, str]:
    number = _BINARY["train"].fullmatch(name) or _PYTHON["train"].fullmatch(name)
    return (int(number[1]) if number else 0, name)


def recipe(root: Path, wish: Wish) -> Recipe | None:
    """Return how a split below a folder is prepared, or None where there is none."""
    found = find(root, wish.split)
    if found is None:
        return None

    def write(draft: Draft) -> Contents:
        reading = Reading(found)
        for pixels, labels in limited(reading.chunks(wish.split), wish.count, PIXELS):
            draft.add(pixels, labels, of=_expected_count(found, wish.count))
        contents = Contents(3, SIDE, SIDE, reading.class_names(wish.entry.classes), "")
        digest = draft.digest(contents)
        return contents.described(origin(wish.entry, wish.split, digest, draft.count, root))

    files = found.files if found.names is None else (*found.files, found.names)
    return Recipe(
        name=wish.entry.name,
        split=wish.split,
        wanted=(str(wish.count), str(root.resolve())),
        state=state_of(files),
        expected_bytes=_expected_count(found, wish.count) * PIXELS,
        write=write,
    )


def _expected_count(found: Found, count: int | None) -> int:
    """Guess the number of images; what is really there is counted while it is read."""
    if found.form == "archive":
        there = 5 * BATCH
    else:
        there = sum(path.stat().st_size for path in found.files) // RECORD
    return there if count is None else min(count, there)


class Reading:
    """Reads one split, and remembers what it needs to name the classes."""

    def __init__(self, found: Found) -> None:
        self._found = found
        self._highest = 0
        self._names: tuple[str, ...] = ()
        if found.names is not None:
            self._names = _names(found.names.name, found.names.read_bytes(), str(found.names))

    def chunks(self, split: str) -> Iterator[Chunk]:
        """Yield pixels (image by image, plane by plane) and labels, in order."""
        for pixels, labels in self._raw_chunks(split):
            self._highest = max(self._highest, *labels)
            if self._names and self._highest >= len(self._names):
                raise DataError(
                    f"{self._found.files[0].parent} has a label {self._highest} and names for"
                    f" {len(self._names)} classes only",
                    hint="the files are damaged or do not belong together",
                )
            yield pixels, labels

    def class_names(self, published: Sequence[str]) -> tuple[str, ...]:
        """Return the names of the classes, once everything was read."""
        return class_names(self._names, published, self._highest)

    def _raw_chunks(self, split: str) -> Iterator[Chunk]:
        if self._found.form == "archive":
            yield from self._from_archive(self._found.files[0], split)
            return
        for path in self._found.files:
            if self._found.form == "binary":
                yield from _from_file(path)
            else:
                yield _from_pickle_file(path)

    def _from_archive(self, archive: Path, split: str) -> Iterator[Chunk]:
        binary, python = _BINARY[split], _PYTHON[split]
        held: dict[str, Chunk] = {}

        def wanted(name: str) -> bool:
            return bool(name in _NAMES.values() or binary.fullmatch(name) or python.fullmatch(name))

        for name, content in archives.members(archive, wanted):
            title = f"{archive}: {name}"
            if name in _NAMES.values():
                self._names = _names(name, content, title)
            else:
                read = from_binary if name.endswith(".bin") else from_python
                held[name] = read(content, title)
        if not held:
            raise DataError(
                f"{archive} holds no {split} batch of CIFAR-10",
                hint="it is another archive, or cut off; delete it and fetch it again",
            )
        yield from (held[name] for name in sorted(held, key=_order))


def _from_file(path: Path) -> Iterator[Chunk]:
    _check_records(path.stat().st_size, str(path))
    with path.open("rb") as file:
        while raw := file.read(RECORD * BATCH):
            yield from_binary(raw, str(path))


def _from_pickle_file(path: Path) -> Chunk:
    if path.stat().st_size > _MAX_PICKLE_BYTES:
        raise DataError(f"{path} is too large for a pickled batch")
    return from_python(path.read_bytes(), str(path))


def from_binary(raw: bytes, name: str) -> Chunk:
    """Split records of one label byte and 3,072 pixel bytes."""
    _check_records(len(raw), name)
    view = memoryview(raw)
    starts = range(1, len(raw), RECORD)
    return b"".join([view[start : start + PIXELS] for start in starts]), raw[::RECORD]


def _check_records(size_bytes: int, name: str) -> None:
    if not size_bytes or size_bytes % RECORD:
        raise DataError(
            f"{name} has {size_bytes} bytes: not a whole number of {RECORD}-byte records",
            hint="it is cut off, or not in CIFAR-10's binary format; fetch it again",
        )


def from_python(raw: bytes, name: str) -> Chunk:
    """Read one pickled batch without executing what is in it."""
    batch = safepickle.read(raw, name)
    data, labels = batch.get("data"), _labels(batch.get("labels"))
    if (
        not isinstance(data, safepickle.Array)
        or data.item != "u1"
        or data.shape[1:] not in ((PIXELS,), (3, SIDE, SIDE))
        or len(labels) != data.shape[0]
        or not labels
    ):
        raise DataError(
            f"{name} is not a CIFAR-10 batch: it needs `data` of N x {PIXELS} and N `labels`",
            hint="it is damaged or in another format; fetch it again",
        )
    return data.raw, labels


def _labels(found: object) -> Sequence[int]:
    """Return labels that may be a list or an array; nothing where they are no labels."""
    if isinstance(found, safepickle.Array):
        found = found.numbers()
    if not isinstance(found, (list, tuple, bytes)):
        return ()
    sound = all(type(label) is int and 0 <= label < _MOST_LABELS for label in found)
    return found if sound else ()


def _names(file_name: str, raw: bytes, title: str) -> tuple[str, ...]:
    if file_name.endswith(".txt"):
        lines = raw.decode("utf-8", "replace").splitlines()
        return tuple(line.strip() for line in lines if line.strip())
    names = safepickle.read(raw, title).get("label_names")
    if not isinstance(names, (list, tuple)):
        return ()
    return tuple(
        name.decode("utf-8", "replace") if isinstance(name, bytes) else str(name) for name in names
    )
