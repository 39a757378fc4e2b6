"""Baked images: copies that share what nobody writes to again."""

from __future__ import annotations

from pathlib import Path

import pytest

from paceline.errors import EnvironmentFault
from paceline.rehearsal.machines.images import DOCKER, UPPER, ImageShelf
from paceline.rehearsal.machines.places import Places


def _write(path: Path, text: str = "x") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.fixture
def places(tmp_path: Path) -> Places:
    """Return the places of a rehearsal, its base filled."""
    made = Places(tmp_path, "abc")
    _write(made.base / "etc/hostname", "base")
    return made


def _machine(places: Places, name: str) -> Path:
    folder = places.machine(name)
    folder.mkdir(parents=True)
    return folder


def test_a_public_image_is_the_base(places: Places) -> None:
    """A machine from an image that nobody baked begins with the base alone."""
    disk = _machine(places, "i-1")
    ImageShelf(places).give("ami-public", disk)
    assert (disk / UPPER / "etc/hostname").read_text() == "base"
    assert list((disk / DOCKER).iterdir()) == []


def test_layers_of_images_are_shared_and_those_of_containers_are_not(places: Places) -> None:
    """Docker's read-only layers are linked; whatever it still writes to is copied."""
    shelf, disk = ImageShelf(places), _machine(places, "i-1")
    _write(disk / UPPER / "usr/tool")
    layers = disk / DOCKER / "overlay2"
    _write(layers / "image1/diff/big")
    _write(layers / "container1/diff/log")
    _write(layers / "container1-init/diff/hosts")
    _write(disk / DOCKER / "image/overlay2/layerdb/mounts/c/mount-id", "container1")
    (layers / "l").mkdir()
    (layers / "l/SHORT").symlink_to("../image1/diff")
    shelf.begin("ami-1")
    shelf.fill("ami-1", disk)
    other = _machine(places, "i-2")
    shelf.give("ami-1", other)
    assert (other / UPPER / "usr/tool").read_text() == "x"
    copied = other / DOCKER / "overlay2"
    assert (copied / "image1/diff/big").samefile(layers / "image1/diff/big")
    for name in ("container1/diff/log", "container1-init/diff/hosts"):
        assert not (copied / name).samefile(layers / name)
    assert (copied / "l/SHORT").readlink() == Path("../image1/diff")


def test_a_forgotten_image_takes_nothing_from_its_machines(places: Places) -> None:
    """Machines stand on their own; the image's folder goes."""
    shelf, disk = ImageShelf(places), _machine(places, "i-1")
    _write(disk / UPPER / "file")
    (disk / DOCKER).mkdir()
    shelf.begin("ami-1")
    shelf.fill("ami-1", disk)
    shelf.give("ami-1", _machine(places, "i-2"))
    shelf.forget("ami-1")
    assert not (places.images / "ami-1").exists()
    assert (places.machine("i-2") / UPPER / "file").exists()


def test_an_image_that_could_not_be_made_boots_nothing(places: Places) -> None:
    """Trouble in the making is said to whoever starts from it."""
    shelf = ImageShelf(places)
    shelf.begin("ami-1")
    shelf.fill("ami-1", places.machine("i-gone"))
    with pytest.raises(EnvironmentFault, match="ami-1"):
        shelf.give("ami-1", _machine(places, "i-2"))
