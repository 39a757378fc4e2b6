"""MNIST's IDX format: plain or gzipped, of any size, and checked."""

from __future__ import annotations

import contextlib
import gzip
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.datasets import idx, prepare
from paceline.errors import DataError


@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize("inner", [".", "raw", "MNIST/raw"])
def test_images_and_labels_are_read(
    tmp_path: Path, write_idx: Callable[..., Path], make: Any, *, zipped: bool, inner: str
) -> None:
    """Both forms, in the folders that people have; any number and size of images."""
    write_idx(tmp_path / inner, zipped=zipped)
    made = prepare("mnist", tmp_path)
    assert (made.count, made.channels, made.height, made.width) == (12, 1, 5, 5)
    assert made.path.read_bytes() == make.noise(12 * 25)
    assert made.labels_path is not None
    expected = tuple(index % 10 for index in range(12))
    assert struct.unpack("<12i", made.labels_path.read_bytes()) == expected
    assert made.source.startswith("12 train images in the format of MNIST")


def test_the_test_split_has_its_own_files(tmp_path: Path, write_idx: Callable[..., Path]) -> None:
    """They are called t10k, as published."""
    write_idx(tmp_path, split="t10k", count=3)
    assert prepare("fashion-mnist", tmp_path, split="test").count == 3
    with pytest.raises(DataError, match="holds no train images of Fashion-MNIST"):
        prepare("fashion-mnist", tmp_path)


def test_images_without_labels_are_fine(tmp_path: Path, write_idx: Callable[..., Path]) -> None:
    """A generator needs none, and none are invented."""
    made = prepare("mnist", write_idx(tmp_path, labelled=False))
    assert made.labels_path is None
    assert made.classes == ()


def test_colour_images_in_idx_files_are_taken(tmp_path: Path, make: Any) -> None:
    """Four sides are images, channels, height and width."""
    (tmp_path / "train-images.idx3-ubyte").write_bytes(make.idx_bytes((2, 3, 4, 5), bytes(120)))
    made = prepare("mnist", tmp_path)
    assert (made.count, made.channels, made.height, made.width) == (2, 3, 4, 5)


def test_fewer_images_can_be_asked_for(tmp_path: Path, write_idx: Callable[..., Path]) -> None:
    """The first so many are taken."""
    made = prepare("mnist", write_idx(tmp_path), count=5)
    assert made.count == 5
    assert made.path.stat().st_size == 5 * 25


HEAD = struct.pack(">HBB3I", 0, 8, 3, 2, 2, 2)


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", "does not begin like"),
        (b"\x1f\x8b\x08\x00" + bytes(30), "does not begin like"),
        (struct.pack(">HBB3I", 0, 13, 3, 2, 2, 2) + bytes(32), "does not begin like"),
        (HEAD[:9], "header is cut off"),
        (HEAD + bytes(7), "should have 24 bytes and has 23"),
        (HEAD + bytes(9), "should have 24 bytes and has 25"),
        (struct.pack(">HBB3I", 0, 8, 3, 0, 2, 2), "it is empty"),
        (struct.pack(">HBB3I", 0, 8, 3, *[(1 << 32) - 1] * 3) + bytes(9), "should have"),
    ],
)
@pytest.mark.parametrize("zipped", [False, True])
def test_what_does_not_fit_is_refused(
    tmp_path: Path, *, raw: bytes, reason: str, zipped: bool
) -> None:
    """Magic number, sides and length are checked before a byte is used."""
    name = "train-images-idx3-ubyte" + (".gz" if zipped else "")
    (tmp_path / name).write_bytes(gzip.compress(raw) if zipped else raw)
    reasons = f"{reason}|cut off|goes on|cannot be in a file" if zipped else reason
    with pytest.raises(DataError, match=f"is not a sound IDX file: .*({reasons})") as caught:
        prepare("mnist", tmp_path)
    assert "fetch it again" in (caught.value.hint or "")


@pytest.mark.parametrize("cut", [3, 12, 40])
def test_a_cut_off_gzip_file_is_refused(
    tmp_path: Path, write_idx: Callable[..., Path], cut: int
) -> None:
    """Half a download is never half a data set."""
    write_idx(tmp_path, zipped=True)
    path = tmp_path / "train-images-idx3-ubyte.gz"
    path.write_bytes(path.read_bytes()[:-cut])
    with pytest.raises(DataError, match="is not a sound IDX file"):
        prepare("mnist", tmp_path)


def test_labels_must_be_as_many_as_images(
    tmp_path: Path, write_idx: Callable[..., Path], make: Any
) -> None:
    """Files that do not belong together are noticed."""
    write_idx(tmp_path)
    (tmp_path / "train-labels-idx1-ubyte").write_bytes(make.idx_bytes((11,), bytes(11)))
    with pytest.raises(DataError, match="it has 12 images, and there are 11 labels"):
        prepare("mnist", tmp_path)


def test_files_in_each_others_place_are_refused(tmp_path: Path, make: Any) -> None:
    """Labels have one side and images have three or four."""
    (tmp_path / "train-images-idx3-ubyte").write_bytes(make.idx_bytes((3,), bytes(3)))
    with pytest.raises(DataError, match="it has 1 sides, not 3 or 4"):
        prepare("mnist", tmp_path)
    (tmp_path / "train-images-idx3-ubyte").write_bytes(make.idx_bytes((3, 1, 1), bytes(3)))
    (tmp_path / "train-labels-idx1-ubyte").write_bytes(make.idx_bytes((3, 1), bytes(3)))
    with pytest.raises(DataError, match="labels have one side, not 2"):
        prepare("mnist", tmp_path)


@given(raw=st.binary(max_size=80), zipped=st.booleans())
def test_no_bytes_whatever_lead_to_another_error(
    tmp_path_factory: pytest.TempPathFactory, *, raw: bytes, zipped: bool
) -> None:
    """Anything that is no IDX file is a DataError."""
    path = tmp_path_factory.mktemp("fuzz") / ("a.gz" if zipped else "a")
    path.write_bytes(raw)
    with contextlib.suppress(DataError):
        assert all(idx.read_sides(path))
