"""Sample sheets."""

from __future__ import annotations

import io

import pytest
import torch

from paceline.trainer import pictures

pytestmark = pytest.mark.torch


def test_images_stand_side_by_side_in_full_range() -> None:
    """-1 is black, 1 is white; nine images take two rows of up to eight."""
    images = torch.full((9, 3, 4, 4), -1.0)
    images[8] = 1.0
    sheet = pictures.sheet(images)
    assert sheet.shape == (2 + 2 * 6, 2 + 8 * 6, 3)
    assert int(sheet[:8].max()) == 0
    assert torch.equal(sheet[8:12, 2:6], torch.full((4, 4, 3), 255, dtype=torch.uint8))
    assert int(sheet[8:12, 8:].max()) == 0


def test_a_sheet_shows_no_more_than_it_can() -> None:
    """A large batch is shown in part."""
    sheet = pictures.sheet(torch.zeros(200, 1, 2, 2))
    assert sheet.shape == (2 + 8 * 4, 2 + 8 * 4, 1)


@pytest.mark.parametrize(("channels", "mode"), [(1, "L"), (3, "RGB"), (2, "L")])
def test_a_sheet_becomes_a_picture(channels: int, mode: str) -> None:
    """Grey and coloured sheets become PNG files; other sheets show their first channel."""
    image = pytest.importorskip("PIL.Image")
    sheet = pictures.sheet(torch.rand(3, channels, 4, 4) * 2 - 1)
    opened = image.open(io.BytesIO(pictures.encoded(sheet)))
    assert opened.mode == mode
    expected = sheet if mode == "RGB" else sheet[:, :, 0].contiguous()
    assert opened.tobytes() == pictures.raw_bytes(expected)
