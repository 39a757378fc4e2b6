"""Images for engines that can fetch none: made from the files of this machine.

`machine` is an image of a few kilobytes: empty folders, over which `machine_mounts` lays this
machine's own programs, its Python and torch included, without a copy. It starts as quickly as
any image, and is what most tests need.
"""

from __future__ import annotations

import io
import sys
import tarfile
from pathlib import Path

from paceline.rehearsal.engine import Engine

MACHINE_IMAGE = "paceline-lab/machine:latest"
_FOLDERS = ("proc", "sys", "dev", "tmp", "root", "run", "sbin", "usr", "etc", "var/tmp")
# Debian's programs are found by way of these; not every machine has them.
_SETTINGS = ("/etc/alternatives", "/etc/openmpi")
PATH = "/usr/local/bin:/usr/bin:/bin"


def load_machine_image(engine: Engine, name: str = MACHINE_IMAGE) -> str:
    """Give an engine the image of this machine; return its id."""
    python = f"{sys.prefix}/bin:" if sys.prefix != sys.base_prefix else ""
    return engine.docker(
        "import", "--change", f"ENV PATH={python}{PATH}", "-", name, stdin=machine_skeleton()
    )


def machine_mounts() -> tuple[str, ...]:
    """Return what is to be mounted over that image, each as `PATH:PATH:ro`."""
    paths = ["/usr", *(path for path in _SETTINGS if Path(path).is_dir())]
    for path in (sys.prefix, sys.base_prefix):
        if not Path(path).is_relative_to("/usr") and path not in paths:
            paths.append(path)
    return tuple(f"{path}:{path}:ro" for path in paths)


def machine_skeleton() -> bytes:
    """Return a root file system as a tar file: folders, and links as this machine has them."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        add_skeleton(archive)
    return made.getvalue()


def add_skeleton(archive: tarfile.TarFile) -> None:
    """Add the folders and links that a root file system has."""
    for name in _FOLDERS:
        folder = tarfile.TarInfo(name)
        folder.type, folder.mode = tarfile.DIRTYPE, 0o1777 if "tmp" in name else 0o755
        archive.addfile(folder)
    # `sbin` stays a folder: engines put their own init there.
    for name in ("bin", "lib", "lib64"):
        if (path := Path("/", name)).is_symlink():
            add_link(archive, name, str(path.readlink()))


def add_link(archive: tarfile.TarFile, name: str, target: str) -> None:
    """Add a symbolic link."""
    link = tarfile.TarInfo(name)
    link.type, link.linkname = tarfile.SYMTYPE, target
    archive.addfile(link)
