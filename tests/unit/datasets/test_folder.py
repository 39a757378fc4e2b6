"""Trees of pictures: classes, splits, and pictures that cannot be read."""

from __future__ import annotations

import importlib.util
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from paceline.datasets import ImageSet, decode_worker, decoding, encoded, folder, locate, prepare
from paceline.errors import DataError, MissingProgram, UsageError

Write = Callable[..., Path]


def labels_of(made: ImageSet) -> tuple[int, ...]:
    """Return the labels of a prepared set."""
    assert made.labels_path is not None
    return struct.unpack(f"<{made.count}i", made.labels_path.read_bytes())


def test_each_folder_below_the_root_is_a_class(tmp_path: Path, write_tree: Write) -> None:
    """Classes are numbered alphabetically, and pictures may lie deep."""
    root = write_tree(tmp_path / "tree", {"dog": 2, "cat/long/haired": 1, "cat": 1})
    made = prepare("folder", root, image_size=8)
    assert made.classes == ("cat", "dog")
    assert labels_of(made) == (0, 0, 1, 1)
    assert (made.count, made.channels, made.height, made.width) == (4, 3, 8, 8)
    first = (root / "cat" / "0.png").read_bytes()
    assert made.path.read_bytes()[:192] == decode_worker.decode(first, 8, 3)
    assert made.source == f"a folder of images: 4 train images, read from {root}"


def test_the_default_size_is_that_of_the_dcgan(tmp_path: Path, write_tree: Write) -> None:
    """64x64 in colour unless something else is asked for."""
    root = write_tree(tmp_path / "tree", {"a": 1})
    assert prepare("folder", root).path.stat().st_size == 3 * 64 * 64
    grey = prepare("folder", root, image_size=28, channels=1)
    assert (grey.channels, grey.path.stat().st_size) == (1, 28 * 28)


def test_pictures_without_classes_have_no_labels(tmp_path: Path, write_tree: Write) -> None:
    """A flat folder is enough for a generator."""
    made = prepare("folder", write_tree(tmp_path / "tree", {".": 3}), image_size=4)
    assert (made.count, made.labels_path, made.classes) == (3, None, ())


def test_pictures_beside_the_classes_are_left_out_and_counted(
    tmp_path: Path, write_tree: Write
) -> None:
    """Nothing is left out in silence."""
    made = prepare("folder", write_tree(tmp_path / "tree", {".": 2, "a": 1}), image_size=4)
    assert made.count == 1
    assert "2 pictures beside the class folders left out" in made.source


def test_splits_number_the_classes_alike(tmp_path: Path, write_tree: Write) -> None:
    """A class that only one split has does not shift the others' labels."""
    root = write_tree(tmp_path / "tree", {"train/b": 1, "train/d": 1, "val/a": 1, "val/d": 1})
    train = prepare("imagenet", root, image_size=4)
    test = prepare("imagenet", root, split="test", image_size=4)
    assert train.classes == test.classes == ("a", "b", "d")
    assert (labels_of(train), labels_of(test)) == ((1, 2), (0, 2))


def test_a_class_that_is_called_train_is_a_class(tmp_path: Path, write_tree: Write) -> None:
    """Split folders are recognised only where there is nothing else."""
    root = write_tree(tmp_path / "tree", {"train": 1, "bus": 1})
    assert prepare("folder", root, image_size=4).classes == ("bus", "train")


@pytest.mark.parametrize(
    ("name", "inner"),
    [
        ("lfw", "lfw"),
        ("lfw", "lfw-deepfunneled"),
        ("lfw", "."),
        ("imagenet", "ILSVRC/Data/CLS-LOC/train"),
    ],
)
def test_trees_are_found_in_the_folders_of_their_archives(
    tmp_path: Path, write_tree: Write, name: str, inner: str
) -> None:
    """What was unpacked as it came needs no moving about."""
    write_tree(tmp_path / "root" / inner, {"Ada": 1, "Ben": 2})
    made = prepare(name, tmp_path / "root", image_size=4)
    assert made.classes == ("Ada", "Ben")


def test_a_whole_tree_has_no_test_split(tmp_path: Path, write_tree: Write) -> None:
    """Training pictures are not passed off as test pictures."""
    root = write_tree(tmp_path / "tree", {"a": 1})
    with pytest.raises(DataError, match="holds no test images"):
        prepare("folder", root, split="test")


def test_other_files_and_hidden_folders_are_no_pictures(tmp_path: Path, write_tree: Write) -> None:
    """Notes, thumbnails and our own cache are passed over."""
    root = write_tree(tmp_path / "tree", {"a": 1, ".thumbs": 1})
    (root / "a" / "notes.txt").write_text("hello")
    (root / "a" / ".hidden.png").write_bytes(b"")
    assert prepare("folder", root, image_size=4).count == 1
    assert prepare("folder", root, image_size=5).count == 1


def test_a_link_in_a_circle_ends(tmp_path: Path, write_tree: Write) -> None:
    """Linked folders are followed, and each is visited once."""
    root = write_tree(tmp_path / "tree", {"a": 1})
    (root / "a" / "again").symlink_to(root)
    other = write_tree(tmp_path / "other", {".": 1})
    (root / "b").symlink_to(other)
    found = folder.find(root, "train")
    assert found is not None
    assert found.names == ("a/0.png", "b/0.png")


def test_a_few_unreadable_pictures_are_named_and_left_out(
    tmp_path: Path, write_tree: Write
) -> None:
    """How many, and which; labels stay with their pictures."""
    root = write_tree(tmp_path / "tree", {"a": 20, "b": 21})
    (root / "a" / "3.png").write_bytes(b"broken")
    (root / "b" / "4.png").write_bytes(b"")
    made = prepare("folder", root, image_size=4)
    assert made.count == 39
    assert labels_of(made) == (0,) * 19 + (1,) * 20
    assert "2 of 41 unreadable and left out: a/3.png (UnidentifiedImageError" in made.source
    assert "b/4.png (it is empty)" in made.source


def test_more_than_one_in_twenty_is_an_error(tmp_path: Path, write_tree: Write) -> None:
    """The first five are named."""
    root = write_tree(tmp_path / "tree", {"a": 10})
    (root / "a" / "3.png").write_bytes(b"broken")
    with pytest.raises(DataError, match=r"1 images, which is more than 5% of 10.*a/3\.png"):
        prepare("folder", root, image_size=4)


def test_a_changed_picture_is_decoded_again(tmp_path: Path, write_tree: Write, make: Any) -> None:
    """Files that change, come or go make the cache out of date."""
    root = write_tree(tmp_path / "tree", {"a": 3})
    first = prepare("folder", root, image_size=4)
    (root / "a" / "1.png").write_bytes(make.picture(20, 14, seed=77))
    second = prepare("folder", root, image_size=4)
    assert second.digest != first.digest
    (root / "a" / "2.png").unlink()
    assert prepare("folder", root, image_size=4).count == 2
    assert not first.path.exists()


def test_a_new_class_is_noticed_although_it_is_empty(tmp_path: Path, write_tree: Write) -> None:
    """The numbers of the classes follow the folders, also in the cache."""
    root = write_tree(tmp_path / "tree", {"train/b": 1, "val/b": 1})
    assert labels_of(prepare("folder", root, image_size=4)) == (0,)
    (root / "train" / "a").mkdir()
    assert labels_of(prepare("folder", root, image_size=4)) == (1,)


def test_the_digest_does_not_depend_on_the_decoder(
    tmp_path: Path, write_tree: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hosts whose decoders round differently still see that they have the same pictures."""
    root = write_tree(tmp_path / "tree", {"a": 3})
    usual = prepare("folder", root, image_size=4)

    def darker(*words: Any, **options: Any) -> Any:
        for pixels in decoding.decoded(*words, **options):
            assert isinstance(pixels, bytes)
            yield bytes(max(0, value - 1) for value in pixels)

    monkeypatch.setattr(encoded, "decoded", darker)
    monkeypatch.setenv("PACELINE_CACHE", str(tmp_path / "other"))
    (root / ".paceline-cache").rename(tmp_path / "away")
    rounded = prepare("folder", root, image_size=4)
    assert rounded.path.read_bytes() != (tmp_path / "away" / usual.path.name).read_bytes()
    assert rounded.digest == usual.digest


def test_two_sizes_live_side_by_side(tmp_path: Path, write_tree: Write) -> None:
    """Another wish does not throw away what another run uses."""
    root = write_tree(tmp_path / "tree", {"a": 1})
    small, large = (prepare("folder", root, image_size=size) for size in (4, 8))
    assert small.path.exists()
    assert large.path.exists()


def test_fewer_pictures_are_taken_from_all_classes(tmp_path: Path, write_tree: Write) -> None:
    """The first pictures would all be of the first class."""
    root = write_tree(tmp_path / "tree", {"a": 4, "b": 4, "c": 4, "d": 4})
    assert labels_of(prepare("folder", root, image_size=4, count=4)) == (0, 1, 2, 3)


def test_progress_is_told_to_the_end(tmp_path: Path, write_tree: Write) -> None:
    """The last call says that all is done."""
    told: list[tuple[str, int, int]] = []
    root = write_tree(tmp_path / "tree", {"a": 70})
    prepare("folder", root, image_size=4, progress=lambda *words: told.append(words))
    assert told[-1] == ("preparing images", 70, 70)
    assert len(told) > 1


def test_missing_pillow_is_said_and_nothing_is_left(
    tmp_path: Path, write_tree: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names the command that installs it."""
    root = write_tree(tmp_path / "tree", {"a": 1})
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    with pytest.raises(MissingProgram, match="Pillow is not installed") as caught:
        prepare("folder", root)
    assert "pip install pillow" in (caught.value.hint or "")


def test_pictures_have_one_or_three_channels(tmp_path: Path, write_tree: Write) -> None:
    """Another number is a slip of the user's."""
    with pytest.raises(UsageError, match="1 or 3 channels, not 4"):
        prepare("folder", write_tree(tmp_path / "tree", {"a": 1}), channels=4)


def test_a_tree_is_looked_for_only_where_the_user_says(tmp_path: Path, write_tree: Write) -> None:
    """A folder that is named and empty is not replaced by another one that happens to be there."""
    write_tree(Path("folder"), {"a": 1})
    (tmp_path / "empty").mkdir()
    assert locate("folder") == Path("folder")
    assert locate("folder", tmp_path / "empty") is None
    with pytest.raises(DataError, match=r"is not in .*/empty$"):
        prepare("folder", tmp_path / "empty")
