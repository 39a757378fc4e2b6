"""LSUN's databases of pictures."""

from __future__ import annotations

import importlib.util
import struct
from pathlib import Path
from typing import Any

import pytest

from paceline.datasets import lsun, prepare, verify
from paceline.errors import DataError, MissingProgram


def database(path: Path, pictures: dict[str, bytes]) -> None:
    """Write pictures into a database as LSUN's are."""
    lmdb = pytest.importorskip("lmdb", reason="lmdb is not installed here")
    path.mkdir(parents=True)
    with (
        lmdb.open(str(path), map_size=1 << 22) as environment,
        environment.begin(write=True) as put,
    ):
        for key, value in pictures.items():
            put.put(key.encode(), value)


def stand_in(path: Path) -> None:
    """Make a folder that looks like a database."""
    path.mkdir(parents=True)
    (path / "data.mdb").write_bytes(b"x")


def test_each_category_is_a_class(tmp_path: Path) -> None:
    """Databases are told by their names, in alphabetical order."""
    for name in ("tower_train_lmdb", "bridge_train_lmdb", "bridge_val_lmdb", "other"):
        stand_in(tmp_path / name)
    train, test = lsun.find(tmp_path, "train"), lsun.find(tmp_path, "test")
    assert train is not None
    assert train.categories == ("bridge", "tower")
    assert test is not None
    assert test.folders == (tmp_path / "bridge_val_lmdb",)


def test_the_root_may_be_a_database_itself(tmp_path: Path) -> None:
    """One category, named directly; a validation set is not trained on."""
    stand_in(tmp_path / "cat_train_lmdb")
    stand_in(tmp_path / "cat_val_lmdb")
    stand_in(tmp_path / "mine")
    found = lsun.find(tmp_path / "cat_train_lmdb", "train")
    assert found is not None
    assert found.categories == ("cat",)
    assert lsun.find(tmp_path / "cat_train_lmdb", "test") is None
    assert lsun.find(tmp_path / "cat_val_lmdb", "train") is None
    assert lsun.find(tmp_path / "cat_val_lmdb", "test") is not None
    assert lsun.find(tmp_path / "mine", "train") is not None
    assert lsun.find(tmp_path / "none", "train") is None


def test_missing_lmdb_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the command that installs it."""
    stand_in(tmp_path / "cat_train_lmdb")
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    with pytest.raises(MissingProgram, match="lmdb is not installed") as caught:
        prepare("lsun", tmp_path)
    assert "pip install lmdb" in (caught.value.hint or "")


def test_pictures_are_decoded_from_the_databases(tmp_path: Path, make: Any) -> None:
    """Values are pictures, keys are only names; bad ones are named with category and key."""
    database(tmp_path / "b_train_lmdb", {f"{n:03}": make.picture(9, 7, seed=n) for n in range(20)})
    database(tmp_path / "a_train_lmdb", {"x": make.picture(8, 8, seed=50), "y": b"broken"})
    made = prepare("lsun", tmp_path, image_size=8)
    assert made.count == 21
    assert made.classes == ("a", "b")
    assert made.labels_path is not None
    assert struct.unpack("<21i", made.labels_path.read_bytes()) == (0,) + (1,) * 20
    assert "1 of 22 unreadable and left out: a/y (" in made.source
    assert prepare("lsun", tmp_path, image_size=8, count=3).count == 3


def test_a_damaged_or_empty_database_is_named(tmp_path: Path) -> None:
    """A download that broke off is not a data set."""
    pytest.importorskip("lmdb", reason="lmdb is not installed here")
    stand_in(tmp_path / "broken" / "cat_train_lmdb")
    with pytest.raises(DataError, match="cannot be read"):
        prepare("lsun", tmp_path / "broken")
    database(tmp_path / "empty" / "cat_train_lmdb", {})
    with pytest.raises(DataError, match="is empty"):
        prepare("lsun", tmp_path / "empty")


def test_databases_are_verified_by_their_bytes(tmp_path: Path, make: Any) -> None:
    """The digest is that of the files, so that hosts can be compared."""
    database(tmp_path / "a_train_lmdb", {"x": make.picture(8, 8)})
    found = verify("lsun", tmp_path)
    assert found.ok
    assert found.parts[0].count == 1
    assert found.digest
