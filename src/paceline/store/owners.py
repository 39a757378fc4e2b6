"""Whose files results are: under sudo, root writes them into the folder of somebody else."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_ROOT = 0
# The stamps of files are those of the kernel's last tick.
_CLOCKS_DIFFER_S = 1.0


@dataclass(frozen=True)
class Owner:
    """Who gets what is made in a folder from a moment on."""

    uid: int
    gid: int
    folder: Path
    # The folders above that will be made with it.
    above: tuple[Path, ...]
    since: float


def owner_under_sudo(folder: Path, environ: Mapping[str, str], now: float) -> Owner | None:
    """Return to whom results in this folder belong; None where nothing is to be handed over."""
    if os.geteuid() != _ROOT or not {"SUDO_UID", "SUDO_GID"} <= set(environ):
        return None
    missing = tuple(path for path in folder.parents if not path.exists())
    place = next(path for path in folder.parents if path.exists())
    found = place.stat()
    if found.st_uid == _ROOT:
        return None
    return Owner(found.st_uid, found.st_gid, folder, missing, now - _CLOCKS_DIFFER_S)


def hand_over(owner: Owner) -> None:
    """Give the owner what root has made there since; what is older, or a link, is left alone."""
    for path in (*owner.above, owner.folder):
        _give(owner, path, None)
    for _, folders, files, place in os.fwalk(owner.folder):
        for name in (*folders, *files):
            _give(owner, name, place)


def _give(owner: Owner, path: Path | str, place: int | None) -> None:
    try:
        found = os.stat(path, dir_fd=place, follow_symlinks=False)
        # A second name of a file could be one of root's own elsewhere.
        single = stat.S_ISDIR(found.st_mode) or found.st_nlink == 1
        if found.st_uid == _ROOT and single and found.st_ctime >= owner.since:
            os.chown(path, owner.uid, owner.gid, dir_fd=place, follow_symlinks=False)
    except OSError:
        return  # it is gone, or on a file system without owners: the results count
