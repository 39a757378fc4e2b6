"""What a source sends becomes the same plain files."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from paceline.datasets.catalogue import DataFile
from paceline.datasets.converting import Work, convert
from paceline.datasets.nouns import silent
from paceline.errors import DataError


def packed(path: Path, files: Mapping[str, bytes]) -> Path:
    """Write a package as registries send them."""
    with tarfile.open(path, "w:gz") as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(f"package/{name}")
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return path


def converted(tmp_path: Path, converter: str, download: Path, *files: DataFile) -> dict[str, bytes]:
    """Convert one download and return what came out."""
    out = tmp_path / "out"
    out.mkdir()
    convert(converter, Work([download], out, files, silent))
    return {path.name: path.read_bytes() for path in out.iterdir()}


@pytest.mark.parametrize("zipped", [False, True])
def test_plain_files_come_out_of_archives_and_gzip(tmp_path: Path, *, zipped: bool) -> None:
    """Packages hold plain or gzipped files, and others that are passed over."""
    name, content = ("a.gz", gzip.compress(b"hello")) if zipped else ("a", b"hello")
    archive = packed(tmp_path / "p.tgz", {name: content, "readme.md": b"hi"})
    assert converted(tmp_path, "plain files", archive, DataFile("a", 5, "")) == {"a": b"hello"}


def test_a_gzipped_download_is_unpacked(tmp_path: Path) -> None:
    """Web hosts send single files."""
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"hello"))
    found = converted(tmp_path, "plain files", tmp_path / "a.gz", DataFile("a", 5, ""))
    assert found == {"a": b"hello"}


def test_a_gzip_bomb_is_unpacked_no_further_than_needed(tmp_path: Path) -> None:
    """A small file cannot fill the memory or the disk."""
    (tmp_path / "a.gz").write_bytes(gzip.compress(bytes(10_000_000)))
    found = converted(tmp_path, "plain files", tmp_path / "a.gz", DataFile("a", 5, ""))
    assert len(found["a"]) == 6


def test_a_damaged_gzip_file_is_an_error(tmp_path: Path) -> None:
    """The error names the file."""
    (tmp_path / "a.gz").write_bytes(b"\x1f\x8b\x08\x00 no gzip file at all")
    with pytest.raises(DataError, match=r"a\.gz cannot be unpacked"):
        converted(tmp_path, "plain files", tmp_path / "a.gz", DataFile("a", 5, ""))


def picture_package(path: Path, *, per_batch: int = 3, width: int = 1024) -> bytes:
    """Write a package of pictures with one image in each row; return the first batch's pixels."""
    image_module = pytest.importorskip("PIL.Image")
    files, first = {}, b""
    for number, name in enumerate([*(f"data_batch_{n}" for n in range(1, 6)), "test_batch"]):
        pixels = hashlib.shake_256(bytes([number])).digest(3 * width * per_batch)
        first = first or pixels
        out = io.BytesIO()
        image_module.frombytes("RGB", (width, per_batch), pixels).save(out, "PNG")
        files[f"{name}.png"] = out.getvalue()
    files["train_lables.json"] = json.dumps([n % 10 for n in range(5 * per_batch)]).encode()
    files["test_lables.json"] = json.dumps([9, 8, 7]).encode()
    packed(path, files)
    return first


def test_pictures_become_cifars_binary_files(tmp_path: Path) -> None:
    """Each row is an image: its label, then its red, green and blue planes."""
    first = picture_package(tmp_path / "p.tgz")
    found = converted(tmp_path, "cifar pictures", tmp_path / "p.tgz")
    assert sorted(found) == [*(f"data_batch_{n}.bin" for n in range(1, 6)), "test_batch.bin"]
    record = found["data_batch_1.bin"][3073:6146]
    row = first[3072:6144]
    assert record == bytes([1]) + row[0::3] + row[1::3] + row[2::3]
    assert [found["data_batch_2.bin"][at] for at in (0, 3073, 6146)] == [3, 4, 5]
    assert [found["test_batch.bin"][at] for at in (0, 3073, 6146)] == [9, 8, 7]


def test_pictures_of_another_shape_are_refused(tmp_path: Path) -> None:
    """An image of CIFAR-10 has 1,024 pixels."""
    picture_package(tmp_path / "p.tgz", width=1000)
    with pytest.raises(DataError, match="is 1000 pixels wide"):
        converted(tmp_path, "cifar pictures", tmp_path / "p.tgz")


def test_rows_and_labels_must_be_as_many(tmp_path: Path) -> None:
    """Labels that do not fit would be wrong for every image."""
    picture_package(tmp_path / "p.tgz", per_batch=2)
    with pytest.raises(DataError, match="holds 2 images, and there are 3 labels"):
        converted(tmp_path, "cifar pictures", tmp_path / "p.tgz")


@pytest.mark.parametrize("labels", [b"[1, 2", b"[300]", b'{"a": 1}', b'["cat"]', None])
def test_labels_that_cannot_be_read_are_an_error(tmp_path: Path, labels: Any) -> None:
    """A package without sound labels is not the one that is meant."""
    files = {"test_lables.json": b"[]"} | ({} if labels is None else {"train_lables.json": labels})
    archive = packed(tmp_path / "p.tgz", files)
    with pytest.raises(DataError, match="labels of CIFAR-10 cannot be read"):
        converted(tmp_path, "cifar pictures", archive)
