"""From a name to images: where they are found, and what a wish may be."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from paceline.datasets import locate, prepare
from paceline.errors import DataError, StorageError, UsageError

Write = Callable[..., Path]


def test_data_is_found_in_the_usual_places_in_order(
    tmp_path: Path, home: Path, write_cifar: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The nearest wins; a named root wins over all."""
    assert locate("cifar10") is None
    cached = write_cifar(home / ".cache/paceline/data/cifar10")
    assert locate("cifar10") == cached
    monkeypatch.setenv("PACELINE_DATA", str(tmp_path / "sets"))
    named = write_cifar(tmp_path / "sets" / "cifar10")
    assert locate("cifar10") == named
    write_cifar(Path("data/cifar10"))
    assert locate("CIFAR-10") == Path("data/cifar10")
    write_cifar(Path("cifar10"))
    assert locate("cifar10") == Path("cifar10")
    root = write_cifar(tmp_path / "root")
    assert locate("cifar10", root) == root


def test_a_root_that_is_named_is_the_only_place(
    tmp_path: Path, home: Path, write_cifar: Write
) -> None:
    """A folder that was named and is empty is an error that says where the set lies as well."""
    cached = write_cifar(home / ".cache/paceline/data/cifar10")
    root = tmp_path / "cifar10"
    assert locate("cifar10", root) is None
    with pytest.raises(DataError, match=f"is not in {root}$") as caught:
        prepare("cifar10", root)
    assert f"--root {root}" in (caught.value.hint or "")
    assert str(cached) in (caught.value.hint or "")


def test_a_root_with_one_split_is_not_mixed_with_another_set(
    tmp_path: Path, home: Path, write_cifar: Write
) -> None:
    """The test images of somebody else's set are not the user's test images."""
    write_cifar(home / ".cache/paceline/data/cifar10")
    own = write_cifar(tmp_path / "own", test=0)
    with pytest.raises(DataError, match=f"{own} holds no test images of CIFAR-10"):
        prepare("cifar10", own, split="test")


def test_a_text_is_as_good_as_a_path(write_cifar: Write) -> None:
    """And `~` is the home."""
    write_cifar(Path.home() / "sets")
    assert prepare("cifar10", "~/sets").count == 12  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("wish", "complaint"),
    [
        ({"split": "valid"}, "a split is train or test"),
        ({"image_size": 0}, "image_size must be between 1 and 4096, not 0"),
        ({"image_size": 5000}, "image_size must be between"),
        ({"count": 0}, "count must be between"),
        ({"channels": -1}, "channels must be between"),
        ({"channels": 1}, "CIFAR-10 has 3 channels, and 1 are asked for"),
    ],
)
def test_a_wish_that_makes_no_sense_is_refused(wish: dict[str, Any], complaint: str) -> None:
    """Before anything is looked for."""
    with pytest.raises(UsageError, match=complaint):
        prepare("cifar10", **wish)


def test_an_image_size_does_not_change_sets_of_a_fixed_size(
    tmp_path: Path, write_cifar: Write
) -> None:
    """CIFAR-10 keeps its own size, and one copy serves all wishes."""
    root = write_cifar(tmp_path)
    made = prepare("cifar10", root, image_size=64)
    assert (made.height, made.width) == (32, 32)
    assert prepare("cifar10", root).path == made.path


def test_data_of_the_user_that_is_missing_says_what_is_expected(tmp_path: Path) -> None:
    """The hint describes the tree and where it can be had."""
    with pytest.raises(DataError, match="ImageNet is not in") as caught:
        prepare("imagenet", tmp_path / "none")
    assert "train/CLASS/*.JPEG" in (caught.value.hint or "")
    assert "image-net.org" in (caught.value.hint or "")


def test_what_the_system_refuses_is_explained(
    tmp_path: Path, write_cifar: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that may not be read is a data error that names it."""
    root = write_cifar(tmp_path)

    def refuse(path: Path, *_words: Any, **_options: Any) -> Any:
        raise PermissionError(13, "Permission denied", str(path))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", refuse)
        with pytest.raises((DataError, StorageError), match="Permission denied") as caught:
            prepare("cifar10", root)
    assert "cannot be read" in str(caught.value)


def test_images_can_be_mapped_and_shared(tmp_path: Path, write_cifar: Write) -> None:
    """The file is what a memory map needs: no header, no padding."""
    import mmap

    made = prepare("cifar10", write_cifar(tmp_path))
    with made.path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as view:
        assert len(view) == made.size_bytes
        first = (tmp_path / "data_batch_1.bin").read_bytes()[1:3073]
        assert view[: made.image_bytes] == first
