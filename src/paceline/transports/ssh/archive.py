"""Files and folders as a stream of tar, made and read in a thread while the loop carries it."""

from __future__ import annotations

import asyncio
import contextlib
import io
import secrets
import shutil
import tarfile
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

from paceline.transports.ssh.process import Broken, RemoteProcess

_BUFFER_BYTES = 1 << 20
T = TypeVar("T")


class _Bridge(io.RawIOBase):
    """A file for a thread, whose bytes the loop carries to or from a host's process."""

    def __init__(self, process: RemoteProcess) -> None:
        super().__init__()
        self._loop = asyncio.get_running_loop()
        self._process = process
        self._rest = b""
        self.off = False

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes, fewer than asked for at the end only."""
        while len(self._rest) < size:
            more = self._carried(self._process.read())
            if not more:
                break
            self._rest += more
        taken, self._rest = self._rest[:size], self._rest[size:]
        return taken

    def write(self, data: Any) -> int:
        """Hand bytes on."""
        self._carried(self._process.write(bytes(data)))
        return len(data)

    def _carried(self, work: Coroutine[Any, Any, T]) -> T:
        if self.off:
            work.close()
            raise Broken
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()


async def pack(process: RemoteProcess, source: Path, name: str) -> None:
    """Send a file or a folder, under a name, to a process that unpacks it."""
    await _in_thread(process, lambda pipe: _pack(pipe, source, name))
    process.end_input()


async def unpack(process: RemoteProcess, target: Path) -> None:
    """Receive what a process packs: a file at exactly `target`, or what is in a folder into it."""
    await _in_thread(process, lambda pipe: _unpack(pipe, target))
    while await process.read():
        pass


async def _in_thread(process: RemoteProcess, work: Callable[[_Bridge], None]) -> None:
    pipe = _Bridge(process)
    task = asyncio.ensure_future(asyncio.to_thread(work, pipe))
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        pipe.off = True
        # The thread waits for the loop: ending the process lets it go.
        await process.end()
        with contextlib.suppress(Exception):
            await task
        raise


def _pack(pipe: _Bridge, source: Path, name: str) -> None:
    with tarfile.open(
        fileobj=pipe, mode="w|", bufsize=_BUFFER_BYTES, format=tarfile.GNU_FORMAT
    ) as tar:
        tar.add(source.resolve() if source.is_symlink() else source, name, filter=_ordinary)


def _ordinary(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """Leave sockets, pipes and devices where they are."""
    if member.isfile() or member.isdir() or member.issym() or member.islnk():
        return member
    return None


def _unpack(pipe: _Bridge, target: Path) -> None:
    try:
        tar = tarfile.open(fileobj=pipe, mode="r|", bufsize=_BUFFER_BYTES)  # noqa: SIM115
    except tarfile.ReadError as error:
        raise Broken from error
    with tar:
        for member in tar:
            if member.name in (".", "./") and member.isdir():
                target.mkdir(parents=True, exist_ok=True)
                _unpack_folder(tar, target)
                return
            target.parent.mkdir(parents=True, exist_ok=True)
            _unpack_file(tar, member, target)
            return


def _unpack_folder(tar: tarfile.TarFile, target: Path) -> None:
    for member in tar:
        try:
            safe = tarfile.data_filter(member, str(target))
        except tarfile.FilterError:
            continue  # a path or a link that leads out of the folder is not followed
        place = target / safe.name
        if safe.isfile():
            _unpack_file(tar, safe, place)
        else:
            if safe.issym() and place.is_symlink():
                place.unlink()
            tar.extract(safe, target, filter="data")


def _unpack_file(tar: tarfile.TarFile, member: tarfile.TarInfo, place: Path) -> None:
    """Write one file, so that it appears whole or not at all."""
    if place.is_dir():
        raise IsADirectoryError(21, "Is a directory", str(place))
    content = tar.extractfile(member)
    draft = place.with_name(f".{place.name}.{secrets.token_hex(4)}.part")
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with draft.open("xb") as file:
            if content is not None:
                shutil.copyfileobj(content, file, _BUFFER_BYTES)
        draft.chmod((member.mode or 0o644) & 0o777)
        draft.replace(place)
    finally:
        draft.unlink(missing_ok=True)
