"""Writing files so that a reader never sees half of one."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from paceline.errors import StorageError


@contextmanager
def storage_errors(path: Path) -> Iterator[None]:
    """Turn what the file system says into words about `path`."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StorageError(
                f"the disk is full: {path} could not be written",
                hint="free some space and run the same command again; what is there is kept",
            ) from error
        reason = error.strerror or str(error)
        raise StorageError(
            f"{path}: {reason}",
            hint="results go to ./paceline-results and state to $PACELINE_HOME "
            "(~/.local/state/paceline); both must be writable",
        ) from error


def write_atomically(path: Path, data: bytes) -> None:
    """Replace `path` by `data`: either the old content is there or the new, also after a crash."""
    with storage_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(temporary, 0o644)  # noqa: PTH101 - mkstemp gives a name, not a Path
            os.replace(temporary, path)  # noqa: PTH105
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
