"""Reads single files out of tar archives, as streams: nothing is unpacked by its own path."""

from __future__ import annotations

import tarfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath

from paceline.errors import DataError

MAX_MEMBER_BYTES = 1 << 30


def members(archive: Path, wanted: Callable[[str], bool]) -> Iterator[tuple[str, bytes]]:
    """Yield the base name and the bytes of each wanted regular file in an archive.

    Only base names are used and nothing is written, so that a path in the archive cannot lead
    anywhere; links and devices are passed over.
    """
    try:
        with tarfile.open(archive, "r|*") as opened:
            for member in opened:
                name = PurePosixPath(member.name).name
                if member.isreg() and wanted(name):
                    yield name, _content(opened, member, archive)
    except (tarfile.TarError, EOFError, zlib.error) as error:
        raise _damaged(archive, str(error)) from error
    except OSError as error:
        if error.errno is None:  # gzip's own complaints carry no number
            raise _damaged(archive, str(error)) from error
        raise


def _content(opened: tarfile.TarFile, member: tarfile.TarInfo, archive: Path) -> bytes:
    if member.size > MAX_MEMBER_BYTES or member.issparse():
        raise _damaged(archive, f"{member.name} claims {member.size} bytes")
    stream = opened.extractfile(member)
    content = b"" if stream is None else stream.read()
    if len(content) != member.size:
        raise _damaged(archive, f"{member.name} is cut off")
    return content


def _damaged(archive: Path, reason: str) -> DataError:
    return DataError(
        f"{archive} cannot be read: {reason}",
        hint="it is damaged or only part of it was downloaded; delete it and fetch it again",
    )
