"""What is to be sent: files, cut into pieces that are verified one by one."""

from __future__ import annotations

import hashlib
import os
import stat
import threading
from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from io import FileIO
    from typing import Any

# Small, because a host holds a piece back until it is whole: each hop costs the time of one.
LEAST_PIECE_BYTES = 1 << 20
MOST_PIECES_OF_A_FILE = 4096
_BLOCK_BYTES = 1 << 20
# It stays in the processor's cache between the reading and the hashing.
_READ_BYTES = 256 << 10
# More would wait for the disk.
_THREADS = 4


class FileEntry(NamedTuple):
    """A file: its path below the target, or nothing where the target itself is the file."""

    name: str
    size: int
    mode: int
    piece_bytes: int
    digests: tuple[str, ...]


class Piece(NamedTuple):
    """A part of a file."""

    file: int
    offset: int
    size: int
    digest: str


class Manifest(NamedTuple):
    """The files to be sent, in order."""

    files: tuple[FileEntry, ...]

    @property
    def size_bytes(self) -> int:
        """How much there is."""
        return sum(file.size for file in self.files)

    def pieces(self) -> tuple[Piece, ...]:
        """Return the pieces of all files, in order."""
        return tuple(
            Piece(number, offset, min(file.piece_bytes, file.size - offset), digest)
            for number, file in enumerate(self.files)
            for offset, digest in zip(range(0, file.size, file.piece_bytes or 1), file.digests)
        )

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON data."""
        return {"files": [file._asdict() for file in self.files]}


def manifest_of(data: dict[str, Any]) -> Manifest:
    """Read a manifest from JSON data; a path that leads out of its target is refused."""
    files = tuple(
        FileEntry(
            str(item["name"]),
            int(item["size"]),
            int(item["mode"]),
            int(item["piece_bytes"]),
            tuple(str(digest) for digest in item["digests"]),
        )
        for item in data["files"]
    )
    for file in files:
        if file.name.startswith("/") or ".." in file.name.split("/") or "\0" in file.name:
            raise ValueError(f"{file.name!r} leads out of its folder")
        if not file.name and len(files) > 1:
            raise ValueError("a file without a name stands beside others")
        if len(file.digests) != -(-file.size // file.piece_bytes):
            raise ValueError(f"{file.name!r} has too few or too many pieces")
    return Manifest(files)


def survey(source: str, leave_out: Sequence[str] = ()) -> Manifest:
    """Look through a file, or through all files of a folder, and cut them into pieces.

    `leave_out` are the names of files and folders that stay behind, wherever they are.
    """
    if not os.path.isdir(source):
        return Manifest((_entry(source, ""),))
    found = sorted(_below(source, "", frozenset(leave_out)))
    return Manifest(tuple(_entry(os.path.join(source, name), name) for name in found))


def _below(folder: str, prefix: str, leave_out: frozenset[str]) -> Iterator[str]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name in leave_out:
                continue
            if entry.is_dir(follow_symlinks=False):
                yield from _below(entry.path, f"{prefix}{entry.name}/", leave_out)
            elif entry.is_file():
                yield prefix + entry.name


def _entry(path: str, name: str) -> FileEntry:
    status = os.stat(path)
    if not stat.S_ISREG(status.st_mode):
        raise OSError(22, "not a plain file", path)
    piece_bytes = piece_bytes_for(status.st_size)
    digests = _Digests(path, status.st_size, piece_bytes).found()
    return FileEntry(name, status.st_size, stat.S_IMODE(status.st_mode), piece_bytes, digests)


def piece_bytes_for(size: int) -> int:
    """Return how large the pieces of a file of some size are."""
    blocks = -(-size // (MOST_PIECES_OF_A_FILE * _BLOCK_BYTES))
    return max(LEAST_PIECE_BYTES, blocks * _BLOCK_BYTES)


class _Digests:
    """The digests of a file's pieces, found by a few threads: all hosts wait for them."""

    def __init__(self, path: str, size: int, piece_bytes: int) -> None:
        self._path = path
        self._size = size
        self._piece_bytes = piece_bytes
        self._digests = [""] * -(-size // piece_bytes)
        self._errors: list[OSError] = []

    def found(self) -> tuple[str, ...]:
        """Look through the file."""
        count = max(1, min(os.cpu_count() or 1, _THREADS, len(self._digests)))
        others = [threading.Thread(target=self._look, args=(k, count)) for k in range(1, count)]
        for thread in others:
            thread.start()
        self._look(0, count)
        for thread in others:
            thread.join()
        if self._errors:
            raise self._errors[0]
        return tuple(self._digests)

    def _look(self, first: int, step: int) -> None:
        """Find every so many digests, from one on."""
        try:
            with open(self._path, "rb", buffering=0) as file:
                for index in range(first, len(self._digests), step):
                    offset = index * self._piece_bytes
                    size = min(self._piece_bytes, self._size - offset)
                    self._digests[index] = _digest(file, offset, size)
        except OSError as error:
            self._errors.append(error)


def _digest(file: FileIO, offset: int, size: int) -> str:
    digest, done = hashlib.sha256(), 0
    room = memoryview(bytearray(min(_READ_BYTES, size)))
    file.seek(offset)
    while done < size:
        count = file.readinto(room[: size - done])
        if not count:
            raise OSError(5, "the file has become shorter while it was read")
        digest.update(room[:count])
        done += count
    return digest.hexdigest()


def piece_is_there(file: FileIO, piece: Piece) -> bool:
    """Whether a file holds a piece, as it should be."""
    try:
        return _digest(file, piece.offset, piece.size) == piece.digest
    except OSError:
        return False
