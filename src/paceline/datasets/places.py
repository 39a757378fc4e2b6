"""Where data sets and their caches lie on a machine."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Mapping
from pathlib import Path

from paceline.errors import StorageError

DATA_VARIABLE = "PACELINE_DATA"
CACHE_VARIABLE = "PACELINE_CACHE"
CACHE_FOLDER = ".paceline-cache"
_SPARE_BYTES = 16 << 20


def _home_cache() -> Path | None:
    try:
        return Path.home() / ".cache" / "paceline"
    except RuntimeError:
        return None


def usual_places(name: str, environ: Mapping[str, str] | None = None) -> tuple[Path, ...]:
    """Return the folders where a data set of this name is looked for, in order."""
    env = os.environ if environ is None else environ
    places = [Path(name), Path("data") / name]
    if env.get(DATA_VARIABLE):
        places.append(Path(env[DATA_VARIABLE]) / name)
    home = _home_cache()
    if home is not None:
        places.append(home / "data" / name)
    return tuple(places)


def fetch_place(name: str, environ: Mapping[str, str] | None = None) -> Path:
    """Return the folder that a data set is fetched into when nobody names one."""
    env = os.environ if environ is None else environ
    if env.get(DATA_VARIABLE):
        return Path(env[DATA_VARIABLE]) / name
    home = _home_cache()
    return Path(name) if home is None else home / "data" / name


def cache_places(root: Path | None, environ: Mapping[str, str] | None = None) -> tuple[Path, ...]:
    """Return the folders that may hold prepared images: beside the data first."""
    env = os.environ if environ is None else environ
    places = [Path(env[CACHE_VARIABLE])] if env.get(CACHE_VARIABLE) else []
    if root is not None:
        places.append(root / CACHE_FOLDER)
    home = _home_cache()
    if home is not None:
        places.append(home / "prepared")
    # Everybody may write to the folder for temporary files: one of this name may not be ours.
    temporary = Path(tempfile.gettempdir()) / f"paceline-{os.getuid()}"
    return (*places, temporary) if _ours(temporary) else tuple(places)


def _ours(folder: Path) -> bool:
    try:
        status = folder.lstat()
    except OSError:
        return True
    return status.st_uid == os.getuid() and stat.S_ISDIR(status.st_mode)


def usable(folder: Path) -> bool:
    """Make the folder if need be; say whether it can be written."""
    # What lies beside the data is as visible as the data.
    mode = 0o777 if folder.name == CACHE_FOLDER else 0o700
    try:
        folder.mkdir(mode=mode, parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK | os.X_OK)


def free_bytes(folder: Path) -> int:
    """Return how many bytes can still be written below a folder, which need not exist yet."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return shutil.disk_usage(folder).free


def require_space(folder: Path, needed_bytes: int, what: str) -> None:
    """Raise a StorageError if the disk below a folder cannot take so many bytes."""
    free = free_bytes(folder)
    if free >= needed_bytes + _SPARE_BYTES:
        return
    raise StorageError(
        f"{what} needs {mebibytes(needed_bytes)} in {folder}, and only {mebibytes(free)} are free",
        hint=f"free some space there, or set {CACHE_VARIABLE} or {DATA_VARIABLE} to a larger disk",
    )


def mebibytes(count_bytes: int) -> str:
    """Return a size in words, such as `170.3 MiB`."""
    return f"{count_bytes / (1 << 20):.1f} MiB"
