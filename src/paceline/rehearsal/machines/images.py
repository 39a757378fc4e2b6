"""What machines start from, and baked images: the changes that a disk has over this machine.

A machine's root is this machine's with one layer above it, which is the machine's own. A new
machine gets a copy of its image's layer: the kernel allows no second layer below it, as all of
them lie inside the root that they would stand on.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from dataclasses import dataclass, field
from pathlib import Path

from paceline.errors import EnvironmentFault
from paceline.rehearsal.machines.places import Places

# The layer over this machine's root, and what no layer may hold: a docker engine's own layers.
UPPER, DOCKER = "upper", "docker"
# An engine's layers, and where it notes which of them belong to containers.
_LAYERS, _MOUNTS = "overlay2", "image/overlay2/layerdb/mounts"


@dataclass
class _Kept:
    """One image, and whether it is complete."""

    ready: threading.Event = field(default_factory=threading.Event)
    trouble: str | None = None


class ImageShelf:
    """The images that were made of machines. Safe to use from several threads."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._images: dict[str, _Kept] = {}

    def begin(self, image_id: str) -> None:
        """Announce an image, whose content follows."""
        self._images[image_id] = _Kept()

    def fill(self, image_id: str, disk: Path) -> None:
        """Copy what is on a machine's disk into the image."""
        kept = self._images.get(image_id)
        if kept is None:
            return  # it was dropped in the meantime
        folder = self._places.images / image_id
        try:
            folder.mkdir(parents=True)
            _copy_disk(disk, folder)
        except (OSError, EnvironmentFault) as error:
            kept.trouble = str(error)
        kept.ready.set()
        if image_id not in self._images:
            shutil.rmtree(folder, ignore_errors=True)

    def give(self, image_id: str, disk: Path) -> None:
        """Fill the disk of a new machine; an image that is still being made is waited for."""
        kept = self._images.get(image_id)
        if kept is None:
            _copy(self._places.base, disk / UPPER)
            (disk / DOCKER).mkdir()
            return
        kept.ready.wait()
        if kept.trouble is not None:
            raise EnvironmentFault(f"the image {image_id} is not complete: {kept.trouble}")
        _copy_disk(self._places.images / image_id, disk)

    def forget(self, image_id: str) -> None:
        """Drop an image; machines that were made of it have copies."""
        kept = self._images.pop(image_id, None)
        if kept is not None and kept.ready.is_set():
            shutil.rmtree(self._places.images / image_id, ignore_errors=True)


def _copy_disk(source: Path, target: Path) -> None:
    _copy(source / UPPER, target / UPPER)
    shared = _read_only_layers(source / DOCKER)
    if not shared:
        _copy(source / DOCKER, target / DOCKER)
        return
    # Gigabytes that nobody ever writes to again need no copy: links to the same files will do.
    (target / DOCKER / _LAYERS).mkdir(parents=True)
    for path in (source / DOCKER).iterdir():
        if path.name != _LAYERS:
            _copy(path, target / DOCKER / path.name)
    for path in (source / DOCKER / _LAYERS).iterdir():
        _copy(path, target / DOCKER / _LAYERS / path.name, link=path.name in shared)


def _read_only_layers(docker: Path) -> set[str]:
    """Return the layers of images; those of containers change, and belong to one machine."""
    layers = docker / _LAYERS
    if not layers.is_dir():
        return set()
    mounts = (docker / _MOUNTS).glob("*/mount-id")
    written = {path.read_text().strip() for path in mounts}
    written |= {f"{one}-init" for one in written}
    return {path.name for path in layers.iterdir() if (path / "diff").is_dir()} - written


def _copy(source: Path, target: Path, *, link: bool = False) -> None:
    """Copy a layer with all that makes it one: owners, attributes, marks of what was removed."""
    how = "-al" if link else "-a"
    done = subprocess.run(
        ("cp", how, "--reflink=auto", str(source), str(target)),
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )  # fmt: skip
    # A file that goes away while we copy a disk at work is no loss; a full disk is.
    lost = [line for line in done.stderr.splitlines() if "No such file" not in line]
    if lost or not os.path.lexists(target):
        raise EnvironmentFault(f"{source} cannot be copied: {' '.join(lost)[-300:]}")
