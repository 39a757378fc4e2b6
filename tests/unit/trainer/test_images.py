"""Batches from the mapped file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from paceline.errors import DataError
from paceline.trainer.images import Images
from paceline.trainer.order import Portion
from tests.fakes.pixels import image_set

pytestmark = pytest.mark.torch
CPU = torch.device("cpu")


def _portion(*indices: int) -> Portion:
    return Portion(torch.tensor(indices), torch.arange(len(indices)))


def _raw(path: Path, count: int, channels: int, side: int) -> Tensor:
    data = bytearray(path.read_bytes())
    return torch.frombuffer(data, dtype=torch.uint8).view(count, channels, side, side)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_images_of_the_right_size_are_only_scaled(tmp_path: Path, dtype: torch.dtype) -> None:
    """0 becomes -1 and 255 becomes 1; the labels come along."""
    source = image_set(tmp_path, count=10, channels=1, side=28, classes=7)
    images = Images(source, size=28, dtype=dtype, device=CPU)
    batch = images.batch(_portion(7, 2, 2), epoch=3)
    expected = _raw(source.path, 10, 1, 28)[[7, 2, 2]].float() / 255 * 2 - 1
    assert batch.images.dtype == dtype
    tolerance = 1e-6 if dtype == torch.float32 else 0.01
    assert torch.allclose(batch.images.float(), expected, atol=tolerance)
    assert source.labels_path is not None
    labels = torch.frombuffer(bytearray(source.labels_path.read_bytes()), dtype=torch.int32)
    assert batch.labels is not None
    assert batch.labels.tolist() == labels[[7, 2, 2]].tolist()
    assert (batch.size, batch.epoch, len(images)) == (3, 3, 10)


def test_images_are_resized_as_by_pillow(tmp_path: Path) -> None:
    """Each pixel is the one that the usual transform would have given."""
    image = pytest.importorskip("PIL.Image")
    source = image_set(tmp_path, count=4, channels=3, side=32)
    images = Images(source, size=64, dtype=torch.float32, device=CPU)
    found = images.batch(_portion(0, 1, 2, 3), epoch=0).images
    for index, picture in enumerate(_raw(source.path, 4, 3, 32)):
        for channel, plane in enumerate(picture):
            drawn = image.frombytes("L", (32, 32), bytes(plane.flatten().tolist()))
            resized = drawn.resize((64, 64), image.Resampling.BILINEAR)
            pixels = torch.frombuffer(bytearray(resized.tobytes()), dtype=torch.uint8)
            expected = pixels.view(64, 64).float() / 255 * 2 - 1
            assert torch.allclose(found[index, channel], expected, atol=1e-6)


def test_images_without_labels_have_none(tmp_path: Path) -> None:
    """No label is made up."""
    images = Images(image_set(tmp_path), size=32, dtype=torch.float32, device=CPU)
    assert images.batch(_portion(1), epoch=0).labels is None


def test_a_file_that_is_too_short_is_refused(tmp_path: Path) -> None:
    """A prepared file that was cut is named, with what to do."""
    source = replace(image_set(tmp_path), count=25)
    with pytest.raises(DataError, match=r"images\.bin") as caught:
        Images(source, size=32, dtype=torch.float32, device=CPU)
    assert caught.value.hint is not None


def test_some_images_are_chosen_once_each(tmp_path: Path) -> None:
    """A sample of all images is all of them; the same seed chooses the same."""
    source = image_set(tmp_path, count=12, side=8)
    images = Images(source, size=8, dtype=torch.float32, device=CPU)
    assert len(torch.unique(images.some(99, seed=1).flatten(1), dim=0)) == 12
    assert torch.equal(images.some(5, seed=1), images.some(5, seed=1))


def test_the_file_is_never_written(tmp_path: Path) -> None:
    """A read-only file is enough, and stays as it is."""
    source = image_set(tmp_path)
    source.path.chmod(0o444)
    before = source.path.read_bytes()
    images = Images(source, size=32, dtype=torch.float32, device=CPU)
    images.batch(_portion(0), epoch=0).images.zero_()
    assert source.path.read_bytes() == before
