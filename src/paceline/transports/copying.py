"""Copies of files and folders that can be called off, and writes that are all or nothing."""

from __future__ import annotations

import os
import shutil
import stat
import threading
from pathlib import Path
from typing import BinaryIO

_CHUNK_BYTES = 1024 * 1024


class CalledOff(Exception):
    """Nobody waits for this copy any more."""


class Copying:
    """One piece of copying, done in a thread; `call_off` ends it within one chunk."""

    def __init__(self) -> None:
        self._off = threading.Event()

    def call_off(self) -> None:
        """Make the copying end soon, wherever it is."""
        self._off.set()

    def copy(self, source: Path, target: Path) -> None:
        """Copy a file to exactly `target`, or the content of a folder into it.

        Modes, times and symbolic links are kept. Each file appears whole or not at all.
        """
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            self._copy_folder(source, target)
        else:
            self._copy_file(source, target)

    def write(self, data: bytes, target: Path, mode: int) -> None:
        """Write a file at once, with its mode from its first moment on."""
        target.parent.mkdir(parents=True, exist_ok=True)
        draft = _draft_of(target)
        try:
            descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                os.fchmod(file.fileno(), mode)
                file.write(data)
            draft.replace(target)
        finally:
            draft.unlink(missing_ok=True)

    def _copy_folder(self, source: Path, target: Path) -> None:
        target.mkdir(exist_ok=True)
        for entry in os.scandir(source):
            place = target / entry.name
            if entry.is_symlink():
                _copy_link(Path(entry.path), place)
            elif entry.is_dir():
                self._copy_folder(Path(entry.path), place)
            elif entry.is_file():
                self._copy_file(Path(entry.path), place)
        shutil.copystat(source, target)

    def _copy_file(self, source: Path, target: Path) -> None:
        if target.is_dir():
            raise IsADirectoryError(21, "Is a directory", str(target))
        draft = _draft_of(target)
        try:
            with source.open("rb") as reader, draft.open("xb") as writer:
                if not stat.S_ISREG(os.fstat(reader.fileno()).st_mode):
                    raise OSError(22, "Not a plain file", str(source))
                self._pour(reader, writer)
            shutil.copystat(source, draft)
            draft.replace(target)
        finally:
            draft.unlink(missing_ok=True)

    def _pour(self, reader: BinaryIO, writer: BinaryIO) -> None:
        while chunk := reader.read(_CHUNK_BYTES):
            if self._off.is_set():
                raise CalledOff
            writer.write(chunk)


def _copy_link(source: Path, target: Path) -> None:
    if target.is_symlink() or target.is_file():
        target.unlink()
    target.symlink_to(source.readlink())


def _draft_of(target: Path) -> Path:
    return target.with_name(f".{target.name}.{os.getpid()}.{threading.get_ident():x}.part")
