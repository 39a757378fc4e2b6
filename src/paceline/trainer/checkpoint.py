"""Checkpoint files: whole or not there, checked by a sum, the last few kept.

    checkpoints/
        checkpoint-000007.pt          what torch.save makes; torch.load(weights_only=True) reads
        checkpoint-000007.pt.sha256   its sum, as `sha256sum --check` reads it
        first                         the number at which the present training began

The sum is written before the file gets its name: a file with a name can be checked. The numbers
only ever rise, so a new training beside an old one's files cannot be mistaken for it.
"""

from __future__ import annotations

import hashlib
import io
import os
import pickle
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

import torch

from paceline.errors import DataError

_PREFIX = "checkpoint-"
_SUFFIX = ".pt"
_FIRST = "first"


@dataclass(frozen=True)
class Found:
    """A checkpoint that is whole, and what was wrong with newer ones."""

    path: Path
    data: bytes
    passed_over: tuple[str, ...] = ()


class Folder:
    """The checkpoints of one training."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def begin(self) -> None:
        """Note that a new training begins: what is here already is not its own."""
        self.path.mkdir(parents=True, exist_ok=True)
        (self.path / _FIRST).write_text(f"{self._next_number()}\n")

    def write(self, state: Mapping[str, Any], keep: int) -> tuple[Path, int]:
        """Write a checkpoint, then remove all but the last `keep`; return its path and size."""
        self.path.mkdir(parents=True, exist_ok=True)
        path = self.path / f"{_PREFIX}{self._next_number():06d}{_SUFFIX}"
        size_bytes = _write(state, path)
        for number in sorted(self._numbers(), reverse=True)[keep:]:
            old = self.path / f"{_PREFIX}{number:06d}{_SUFFIX}"
            old.unlink(missing_ok=True)
            sum_path(old).unlink(missing_ok=True)
        return path, size_bytes

    def newest(self) -> Found | None:
        """Return the newest checkpoint of the present training that is whole."""
        passed_over: list[str] = []
        for number in sorted(self._numbers(), reverse=True):
            if number < self._first_number():
                break
            path = self.path / f"{_PREFIX}{number:06d}{_SUFFIX}"
            try:
                return Found(path, read_whole(path), tuple(passed_over))
            except DataError as error:
                passed_over.append(error.message)
        if passed_over:
            raise DataError("; ".join(passed_over), hint="no older checkpoint is left")
        return None

    def _numbers(self) -> Iterator[int]:
        for path in self.path.glob(f"{_PREFIX}*{_SUFFIX}"):
            text = path.name[len(_PREFIX) : -len(_SUFFIX)]
            if text.isdigit():
                yield int(text)

    def _next_number(self) -> int:
        return max(self._numbers(), default=0) + 1

    def _first_number(self) -> int:
        try:
            return int((self.path / _FIRST).read_text())
        except (OSError, ValueError):
            return 0


def sum_path(path: Path) -> Path:
    """Return the file beside a checkpoint that holds its sum."""
    return path.with_name(f"{path.name}.sha256")


def read_whole(path: Path) -> bytes:
    """Return the bytes of a checkpoint; DataError if they are not those that were written."""
    if not path.exists():
        raise DataError(f"there is no checkpoint {path}", hint="--resume auto looks for the newest")
    try:
        wanted = sum_path(path).read_text().split()[0]
        data = path.read_bytes()
    except (OSError, IndexError) as error:
        raise DataError(f"{path} cannot be read: {error}") from error
    if hashlib.sha256(data).hexdigest() != wanted:
        raise DataError(f"{path} is damaged or cut short: its SHA-256 is not the one noted")
    return data


def load(data: bytes) -> dict[str, Any]:
    """Return what a checkpoint holds; nothing in it is executed."""
    try:
        state = torch.load(io.BytesIO(data), weights_only=True, map_location="cpu")
    except pickle.UnpicklingError as error:
        # torch's own words advise to read it all the same.
        raise DataError(
            "the checkpoint holds more than names and numbers, and is not read",
            hint="only files that this trainer has written can be gone on from",
        ) from error
    except (RuntimeError, EOFError, ValueError) as error:
        raise DataError(f"the checkpoint cannot be read: {error}") from error
    if not isinstance(state, dict):
        raise DataError("the checkpoint is not one that this trainer has written")
    return state


class _Summing:
    """A file that knows the sum and the size of what was written to it."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.sum = hashlib.sha256()
        self.size_bytes = 0
        self.error: OSError | None = None

    def write(self, data: Any) -> int:
        """Write and add up."""
        self.sum.update(data)
        try:
            written = self._file.write(data)
        except OSError as error:
            self.error = error  # torch reports something of its own in its place
            raise
        self.size_bytes += written
        return written

    def flush(self) -> None:
        """Pass on to the disk's cache."""
        self._file.flush()


def _save(state: Mapping[str, Any], file: _Summing) -> None:
    try:
        torch.save(dict(state), cast("IO[bytes]", file))
    except RuntimeError:
        if file.error is not None:
            raise file.error from None
        raise


def _write(state: Mapping[str, Any], path: Path) -> int:
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        with partial.open("wb") as file:
            summing = _Summing(file)
            _save(state, summing)
            file.flush()
            os.fsync(file.fileno())
        _write_text(sum_path(path), f"{summing.sum.hexdigest()}  {path.name}\n")
        partial.replace(path)
        _sync_folder(path.parent)
    except BaseException:
        sum_path(path).unlink(missing_ok=True)
        raise
    finally:
        partial.unlink(missing_ok=True)
    return summing.size_bytes


def _write_text(path: Path, text: str) -> None:
    with path.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
