"""A look at whole data sets: problems are listed, digests can be compared."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from paceline.datasets import prepare, verify

Write = Callable[..., Path]


def test_a_sound_set_shows_its_parts_and_one_digest(tmp_path: Path, write_cifar: Write) -> None:
    """Counts, shapes and digests of the splits, the same as `prepare` shows."""
    root = write_cifar(tmp_path / "a")
    found = verify("cifar10", root)
    assert found.ok
    assert [(part.split, part.count, part.shape) for part in found.parts] == [
        ("train", 12, (3, 32, 32)),
        ("test", 4, (3, 32, 32)),
    ]
    assert found.parts[0].digest == prepare("cifar10", root).digest
    assert found.parts[0].official is False
    assert found.source == f"images in the format of CIFAR-10 (12 train + 4 test), in {root}"


def test_hosts_compare_by_the_digest(tmp_path: Path, write_cifar: Write) -> None:
    """The same data elsewhere has the same digest, other data another."""
    one = verify("cifar10", write_cifar(tmp_path / "a"))
    same = verify("cifar10", write_cifar(tmp_path / "b" / "cifar-10-batches-bin").parent)
    other = verify("cifar10", write_cifar(tmp_path / "c", per_batch=5))
    assert one.digest == same.digest != other.digest


def test_nothing_is_written(tmp_path: Path, write_cifar: Write, home: Path) -> None:
    """A verification may run on data that belongs to somebody else."""
    root = write_cifar(tmp_path / "a")
    before = sorted(root.rglob("*"))
    verify("cifar10", root)
    assert sorted(root.rglob("*")) == before
    assert list(home.iterdir()) == []


def test_every_problem_is_listed(tmp_path: Path, write_cifar: Write) -> None:
    """Both splits are looked at although the first is broken, and there is no digest."""
    root = write_cifar(tmp_path / "a")
    (root / "data_batch_2.bin").write_bytes(b"x")
    (root / "test_batch.bin").write_bytes(b"y")
    found = verify("cifar10", root)
    assert not found.ok
    assert found.digest == ""
    assert [problem.split(" has ")[0] for problem in found.problems] == [
        f"{root}/data_batch_2.bin",
        f"{root}/test_batch.bin",
    ]


@pytest.mark.parametrize("name", ["cifar10", "mnist", "folder", "lsun"])
def test_a_set_that_is_not_there_is_a_problem_and_no_crash(name: str, tmp_path: Path) -> None:
    """The question has an answer."""
    found = verify(name, tmp_path / "none")
    assert (found.ok, found.root, found.parts) == (False, None, ())
    assert "is not in" in found.problems[0]


def test_another_place_is_not_verified_instead(
    tmp_path: Path, home: Path, write_cifar: Write
) -> None:
    """Whoever names a folder is told about that folder."""
    write_cifar(home / ".cache/paceline/data/cifar10")
    assert not verify("cifar10", tmp_path / "none").ok
    assert verify("cifar10").ok


def test_generated_images_can_be_compared_as_well() -> None:
    """Two hosts with different generators would be noticed."""
    found = verify("fake")
    assert found.ok
    assert [part.count for part in found.parts] == [10_000, 2_000]
    assert len(found.digest) == 64


def test_idx_files_are_verified(tmp_path: Path, write_idx: Write) -> None:
    """Any number and size of images, in either form."""
    plain = verify("mnist", write_idx(tmp_path / "a"))
    zipped = verify("mnist", write_idx(tmp_path / "b", zipped=True))
    assert plain.ok
    assert plain.digest == zipped.digest


def test_trees_are_compared_by_the_bytes_of_their_pictures(
    tmp_path: Path, write_tree: Write
) -> None:
    """No decoder is needed, and another name or byte is another digest."""
    root = write_tree(tmp_path / "a", {"cat": 2, "dog": 1})
    first = verify("folder", root)
    assert first.ok
    assert (first.parts[0].count, first.parts[0].classes) == (3, 2)
    shutil.copytree(root, tmp_path / "b")
    assert verify("folder", tmp_path / "b").digest == first.digest
    (tmp_path / "b" / "cat" / "0.png").rename(tmp_path / "b" / "cat" / "9.png")
    assert verify("folder", tmp_path / "b").digest != first.digest


def test_files_that_are_no_pictures_are_named(tmp_path: Path, write_tree: Write) -> None:
    """An error page that was saved as a picture is found without a decoder."""
    root = write_tree(tmp_path / "a", {"cat": 2})
    (root / "cat" / "1.png").write_text("<html>404</html>")
    found = verify("folder", root)
    assert "1 of 2 files" in found.problems[0]
    assert "cat/1.png" in found.problems[0]
