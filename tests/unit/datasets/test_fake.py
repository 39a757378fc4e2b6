"""Generated images: the same everywhere, of any shape, and with something to learn."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from paceline.datasets import ImageSet, prepare


def pixels_of(made: ImageSet) -> list[bytes]:
    """Return the images one by one."""
    raw = made.path.read_bytes()
    return [raw[at : at + made.image_bytes] for at in range(0, len(raw), made.image_bytes)]


def labels_of(made: ImageSet) -> tuple[int, ...]:
    """Return the labels."""
    assert made.labels_path is not None
    return struct.unpack(f"<{made.count}i", made.labels_path.read_bytes())


def test_the_defaults_are_those_of_cifar() -> None:
    """10,000 images of 3x32x32 in 10 classes, which say that they are not real."""
    made = prepare("fake")
    assert (made.count, made.channels, made.height, made.width) == (10_000, 3, 32, 32)
    assert len(made.classes) == 10
    assert set(labels_of(made)) == set(range(10))
    assert "generated images of the same shape" in made.source


def test_every_host_generates_the_same_bytes() -> None:
    """The digest is fixed: a change of the generator must be meant."""
    made = prepare("fake", count=50)
    assert made.digest == "895ced0195a60014e84fbb87fa5a0f1f2fc7c32fdaa2b5e5ff6c8c14a2457dfa"


@pytest.mark.parametrize(("channels", "size"), [(1, 28), (3, 64), (4, 7), (3, 1)])
def test_any_shape_can_be_had(channels: int, size: int) -> None:
    """The MLP's 28x28 grey images, and odd shapes."""
    made = prepare("fake", channels=channels, image_size=size, count=11)
    assert (made.count, made.channels, made.height, made.width) == (11, channels, size, size)
    assert made.path.stat().st_size == 11 * channels * size * size


def test_train_and_test_are_different_images_of_the_same_classes() -> None:
    """A classifier can be tested on what it has not seen."""
    train, test = prepare("fake", count=40), prepare("fake", split="test", count=40)
    assert train.digest != test.digest
    assert train.classes == test.classes


def test_the_classes_can_be_told_apart() -> None:
    """The nearest training image has the same class, far more often than by chance."""
    train, test = prepare("fake", count=400), prepare("fake", split="test", count=60)
    known = list(zip(pixels_of(train), labels_of(train), strict=True))
    right = 0
    for pixels, label in zip(pixels_of(test), labels_of(test), strict=True):
        distances = [
            (sum((a - b) ** 2 for a, b in zip(pixels[::7], other[::7], strict=True)), its)
            for other, its in known
        ]
        right += min(distances)[1] == label
    assert right > 40


def test_no_folder_of_the_user_is_made(tmp_path: Path, home: Path) -> None:
    """Generated images need no data folder, and make none where one is named."""
    made = prepare("fake", tmp_path / "not-there", count=3)
    assert not (tmp_path / "not-there").exists()
    assert made.path.is_relative_to(home)
