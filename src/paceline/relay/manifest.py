"""What is to be sent: files, cut into pieces that are verified one by one."""

from __future__ import annotations

import hashlib
import os
import stat
from dataclasses import asdict, dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

# Small, because a host holds a piece back until it is whole: each hop costs the time of one.
LEAST_PIECE_BYTES = 1 << 20
MOST_PIECES_OF_A_FILE = 4096
_BLOCK_BYTES = 1 << 20


@dataclass(frozen=True)
class FileEntry:
    """A file: its path below the target, or nothing where the target itself is the file."""

    name: str
    size: int
    mode: int
    piece_bytes: int
    digests: tuple[str, ...]


@dataclass(frozen=True)
class Piece:
    """A part of a file."""

    file: int
    offset: int
    size: int
    digest: str


@dataclass(frozen=True)
class Manifest:
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
        return {"files": [asdict(file) for file in self.files]}


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
    digests, size = [], 0
    with open(path, "rb", buffering=0) as file:
        while size < status.st_size:
            digest, length = _digest(file.fileno(), size, min(piece_bytes, status.st_size - size))
            digests.append(digest)
            size += length
    return FileEntry(name, size, stat.S_IMODE(status.st_mode), piece_bytes, tuple(digests))


def piece_bytes_for(size: int) -> int:
    """Return how large the pieces of a file of some size are."""
    blocks = -(-size // (MOST_PIECES_OF_A_FILE * _BLOCK_BYTES))
    return max(LEAST_PIECE_BYTES, blocks * _BLOCK_BYTES)


def _digest(descriptor: int, offset: int, size: int) -> tuple[str, int]:
    digest, done = hashlib.sha256(), 0
    while done < size:
        block = os.pread(descriptor, min(_BLOCK_BYTES, size - done), offset + done)
        if not block:
            raise OSError(5, "the file has become shorter while it was read")
        digest.update(block)
        done += len(block)
    return digest.hexdigest(), done


def piece_is_there(descriptor: int, piece: Piece) -> bool:
    """Whether a file holds a piece, as it should be."""
    try:
        return _digest(descriptor, piece.offset, piece.size)[0] == piece.digest
    except OSError:
        return False
