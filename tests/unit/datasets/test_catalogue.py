"""The catalogue: names, and facts that must fit together."""

from __future__ import annotations

from pathlib import Path

import pytest

import paceline.datasets
from paceline.datasets.catalogue import CATALOGUE, PackageSource, WebSource, entry_of
from paceline.errors import UsageError

FETCHED = [entry for entry in CATALOGUE.values() if entry.sources]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("cifar10", "cifar10"),
        ("CIFAR-10", "cifar10"),
        ("fashion_mnist", "fashion-mnist"),
        ("FashionMNIST", "fashion-mnist"),
        ("lsun", "lsun"),
    ],
)
def test_names_are_understood_as_people_write_them(written: str, meant: str) -> None:
    """Case, hyphens and underscores do not matter."""
    assert entry_of(written).name == meant


def test_an_unknown_name_suggests_the_nearest() -> None:
    """The hint names the likely word and all known ones."""
    with pytest.raises(UsageError) as caught:
        entry_of("cifar100")
    assert caught.value.hint is not None
    assert "did you mean cifar10?" in caught.value.hint
    assert "lsun" in caught.value.hint


@pytest.mark.parametrize("entry", FETCHED, ids=lambda entry: entry.name)
def test_what_can_be_fetched_is_fully_described(entry: paceline.datasets.Entry) -> None:
    """Each fetched set has files, digests for its splits, and its official host first."""
    assert set(entry.digests) == set(entry.images) == {"train", "test"}
    assert all(len(file.sha256) == 64 and file.size_bytes for file in entry.files)
    assert all(len(digest) == 64 for digest in entry.digests.values())
    assert isinstance(entry.sources[0], WebSource)
    assert isinstance(entry.sources[-1], PackageSource)
    assert (entry.disk_bytes or 0) > (entry.download_bytes or 0) / 2 > 0


def test_the_seeds_datasets_are_all_known() -> None:
    """Every name that the public DCGAN program takes has an entry."""
    words = ["cifar10", "lsun", "mnist", "imagenet", "folder", "lfw", "fake"]
    assert [entry_of(word).name for word in words] == words


def test_no_package_registry_is_named_in_the_code() -> None:
    """Registries are reached through the machine's own clients, which know where they are."""
    package = Path(paceline.datasets.__file__).parent
    text = "".join(path.read_text("utf-8") for path in package.glob("*.py")).lower()
    for forbidden in ("npmjs", "debian.org", "pypi.org", "pythonhosted"):
        assert forbidden not in text
