"""CIFAR-10's formats: binary, python and archives, of any size."""

from __future__ import annotations

import io
import pickle
import struct
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from paceline.datasets import ImageSet, cifar, prepare
from paceline.errors import DataError


def labels_of(made: ImageSet) -> tuple[int, ...]:
    """Return the labels of a prepared set."""
    assert made.labels_path is not None
    return struct.unpack(f"<{made.count}i", made.labels_path.read_bytes())


def expected_of(*files: Path) -> tuple[bytes, tuple[int, ...]]:
    """Return pixels and labels of binary files, read in the simplest way."""
    raw = b"".join(path.read_bytes() for path in files)
    records = [raw[at : at + 3073] for at in range(0, len(raw), 3073)]
    return b"".join(record[1:] for record in records), tuple(record[0] for record in records)


def pickled(root: Path, name: str, pixels: bytes, labels: Any) -> None:
    """Write one batch as the published python files are."""
    numpy = pytest.importorskip("numpy")
    data = numpy.frombuffer(pixels, dtype=numpy.uint8).reshape(-1, 3072)
    batch = {b"data": data, b"labels": labels, b"batch_label": b"x", b"filenames": [b"a.png"]}
    (root / name).write_bytes(pickle.dumps(batch, protocol=2))


def tarred(path: Path, folder: Path, inner: str) -> None:
    """Pack a folder's files as the published archives are."""
    with tarfile.open(path, "w:gz") as archive:
        for file in sorted(folder.iterdir()):
            archive.add(file, f"{inner}/{file.name}")


@pytest.mark.parametrize("inner", [".", "cifar-10-batches-bin"])
def test_binary_batches_become_planes_and_labels(
    tmp_path: Path, write_cifar: Callable[..., Path], inner: str
) -> None:
    """Records are split, batches joined in order; both usual folders are looked in."""
    folder = write_cifar(tmp_path / "set" / inner)
    made = prepare("cifar10", tmp_path / "set")
    pixels, labels = expected_of(folder / "data_batch_1.bin", folder / "data_batch_2.bin")
    assert made.path.read_bytes() == pixels
    assert labels_of(made) == labels
    assert (made.count, made.channels, made.height, made.width) == (12, 3, 32, 32)


def test_the_test_split_is_the_test_batch(tmp_path: Path, write_cifar: Callable[..., Path]) -> None:
    """Training never sees the test images."""
    folder = write_cifar(tmp_path)
    made = prepare("cifar10", tmp_path, split="test")
    assert (made.path.read_bytes(), labels_of(made)) == expected_of(folder / "test_batch.bin")


def test_batches_are_read_in_the_order_of_their_numbers(
    tmp_path: Path, write_cifar: Callable[..., Path]
) -> None:
    """The tenth batch does not come before the second."""
    folder = write_cifar(tmp_path, batches=11, per_batch=1)
    files = [folder / f"data_batch_{number}.bin" for number in range(1, 12)]
    assert prepare("cifar10", tmp_path).path.read_bytes() == expected_of(*files)[0]


def test_data_of_the_users_own_is_taken_as_it_is(
    tmp_path: Path, write_cifar: Callable[..., Path]
) -> None:
    """One batch of another size is fine, and is not called the published set."""
    write_cifar(tmp_path, batches=1, per_batch=5, test=0)
    made = prepare("cifar10", tmp_path)
    assert made.count == 5
    assert made.source == f"5 train images in the format of CIFAR-10, read from {tmp_path}"
    assert made.classes[3] == "cat"


def test_python_batches_give_the_same_set_as_binary_ones(
    tmp_path: Path, write_cifar: Callable[..., Path]
) -> None:
    """The digest does not depend on the form of the files."""
    binary = write_cifar(tmp_path / "binary")
    python = tmp_path / "python" / "cifar-10-batches-py"
    python.mkdir(parents=True)
    for number in (1, 2):
        pixels, labels = expected_of(binary / f"data_batch_{number}.bin")
        pickled(python, f"data_batch_{number}", pixels, list(labels))
    one, other = prepare("cifar10", binary), prepare("cifar10", tmp_path / "python")
    assert one.digest == other.digest
    assert one.path.read_bytes() == other.path.read_bytes()


@pytest.mark.parametrize("form", ["binary", "python"])
@pytest.mark.parametrize("split", ["train", "test"])
def test_the_original_archives_are_read_where_they_lie(
    tmp_path: Path, write_cifar: Callable[..., Path], form: str, split: str
) -> None:
    """Nobody has to unpack, and nothing is unpacked."""
    files = write_cifar(tmp_path / "plain")
    source = files
    if form == "python":
        source = tmp_path / "pickles"
        source.mkdir()
        for path in files.iterdir():
            pixels, labels = expected_of(path)
            pickled(source, path.stem, pixels, list(labels))
    root = tmp_path / "root"
    root.mkdir()
    tarred(root / f"cifar-10-{form}.tar.gz", source, f"cifar-10-batches-{form}")
    made = prepare("cifar10", root, split=split)
    assert made.digest == prepare("cifar10", files, split=split).digest
    assert sorted(path.name for path in root.iterdir()) == [
        ".paceline-cache",
        f"cifar-10-{form}.tar.gz",
    ]


def test_a_malicious_batch_is_refused(tmp_path: Path) -> None:
    """A pickle that would run a command is an error, and the command is not run."""
    target = tmp_path / "executed"
    raw = b"cos\nsystem\n(S'touch " + str(target).encode() + b"'\ntR."
    (tmp_path / "data_batch_1").write_bytes(raw)
    with pytest.raises(DataError, match=r"data_batch_1.*(os|posix)\.system"):
        prepare("cifar10", tmp_path)
    assert not target.exists()


@pytest.mark.parametrize("size", [0, 1, 3072, 3074, 30_000])
def test_a_cut_off_batch_is_named_with_its_size(tmp_path: Path, size: int) -> None:
    """The structure is checked although the content may be anything."""
    (tmp_path / "data_batch_1.bin").write_bytes(bytes(size))
    with pytest.raises(DataError, match=rf"data_batch_1\.bin has {size} bytes") as caught:
        prepare("cifar10", tmp_path)
    assert caught.value.hint is not None


@pytest.mark.parametrize(
    "batch",
    [
        {"labels": [1]},
        {"data": b"x" * 3072, "labels": [1]},
        {"data": "array", "labels": [1, 2]},
        {"data": "array", "labels": [-1]},
        {"data": "array", "labels": ["cat"]},
        {"data": "array", "labels": [True]},
        {"data": "array"},
        {"data": "narrow", "labels": [1]},
        {"data": "wide numbers", "labels": [1]},
    ],
)
def test_a_pickle_of_something_else_is_refused(tmp_path: Path, batch: dict[str, Any]) -> None:
    """Shapes, kinds and numbers of labels must fit."""
    numpy = pytest.importorskip("numpy")
    arrays = {
        "array": numpy.zeros((1, 3072), dtype=numpy.uint8),
        "narrow": numpy.zeros((1, 3071), dtype=numpy.uint8),
        "wide numbers": numpy.zeros((1, 3072), dtype="<i2"),
    }
    made = {
        key: arrays.get(value, value) if key == "data" else value for key, value in batch.items()
    }
    (tmp_path / "data_batch_1").write_bytes(pickle.dumps(made, protocol=2))
    with pytest.raises(DataError, match="is not a CIFAR-10 batch"):
        prepare("cifar10", tmp_path)


def test_arrays_of_labels_and_images_with_sides_are_taken(
    tmp_path: Path, write_cifar: Callable[..., Path]
) -> None:
    """What people pickle themselves may be N x 3 x 32 x 32 with an array of labels."""
    numpy = pytest.importorskip("numpy")
    binary = write_cifar(tmp_path / "binary", batches=1)
    pixels, labels = expected_of(binary / "data_batch_1.bin")
    data = numpy.frombuffer(pixels, dtype=numpy.uint8).reshape(-1, 3, 32, 32)
    batch = {"data": data, "labels": numpy.array(labels)}
    (tmp_path / "data_batch_1").write_bytes(pickle.dumps(batch))
    assert prepare("cifar10", tmp_path).digest == prepare("cifar10", binary).digest


def test_class_names_beside_the_data_are_used(
    tmp_path: Path, write_cifar: Callable[..., Path]
) -> None:
    """Data of the user's own has its own classes."""
    write_cifar(tmp_path, per_batch=3)
    names = [f"kind {number}" for number in range(10)]
    (tmp_path / "batches.meta.txt").write_text("\n".join(names) + "\n\n")
    assert prepare("cifar10", tmp_path).classes == tuple(names)


def test_a_label_without_a_name_is_an_error(
    tmp_path: Path, write_cifar: Callable[..., Path]
) -> None:
    """Files that do not belong together are noticed."""
    write_cifar(tmp_path)
    (tmp_path / "batches.meta.txt").write_text("only\nthree\nnames\n")
    with pytest.raises(DataError, match="names for 3 classes only"):
        prepare("cifar10", tmp_path)


def test_more_classes_than_ten_are_numbered(tmp_path: Path, make: Any) -> None:
    """Data with other labels is not given the names of CIFAR-10's classes."""
    (tmp_path / "data_batch_1.bin").write_bytes(make.cifar_records([0, 11]))
    assert prepare("cifar10", tmp_path).classes == tuple(str(number) for number in range(12))


def test_names_in_a_pickle_are_read(tmp_path: Path) -> None:
    """The python form has its class names in `batches.meta`."""
    pickled(tmp_path, "data_batch_1", bytes(3072), [1])
    names = {b"label_names": [b"this", b"that"], b"num_vis": 3072}
    (tmp_path / "batches.meta").write_bytes(pickle.dumps(names, protocol=2))
    assert prepare("cifar10", tmp_path).classes == ("this", "that")


def test_fewer_images_can_be_asked_for(tmp_path: Path, write_cifar: Callable[..., Path]) -> None:
    """The first so many are taken, across batches, and the file has just their size."""
    folder = write_cifar(tmp_path)
    made = prepare("cifar10", tmp_path, count=8)
    pixels, labels = expected_of(folder / "data_batch_1.bin", folder / "data_batch_2.bin")
    assert made.path.read_bytes() == pixels[: 8 * 3072]
    assert labels_of(made) == labels[:8]
    assert prepare("cifar10", tmp_path, count=99).count == 12


def test_a_changed_batch_is_prepared_anew(tmp_path: Path, write_cifar: Callable[..., Path]) -> None:
    """The cache follows its sources."""
    import os

    first = prepare("cifar10", write_cifar(tmp_path))
    path = tmp_path / "data_batch_2.bin"
    path.write_bytes(path.read_bytes()[::-1])
    os.utime(path, ns=(1, 1))
    second = prepare("cifar10", tmp_path)
    assert second.digest != first.digest


def test_an_archive_of_something_else_is_named(tmp_path: Path) -> None:
    """An archive by the right name without batches in it is an error, not an empty set."""
    with tarfile.open(tmp_path / "cifar-10-binary.tar.gz", "w:gz") as archive:
        info = tarfile.TarInfo("readme")
        info.size = 2
        archive.addfile(info, io.BytesIO(b"hi"))
    with pytest.raises(DataError, match="holds no train batch"):
        prepare("cifar10", tmp_path)


def test_nothing_is_found_in_an_empty_folder(tmp_path: Path) -> None:
    """Neither a folder without batches nor a missing one holds anything."""
    assert cifar.find(tmp_path, "train") is None
    assert cifar.find(tmp_path / "none", "test") is None
