"""The PNG writer."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.trainer import png


@given(st.data(), st.integers(1, 9), st.integers(1, 9), st.sampled_from([1, 3]))
def test_a_picture_is_read_back_as_it_was(
    data: st.DataObject, width: int, height: int, channels: int
) -> None:
    """Another program reads the very pixels that were written."""
    image = pytest.importorskip("PIL.Image")
    size = width * height * channels
    pixels = data.draw(st.binary(min_size=size, max_size=size))
    opened = image.open(io.BytesIO(png.encode(pixels, width, height, channels)))
    assert opened.mode == {1: "L", 3: "RGB"}[channels]
    assert opened.size == (width, height)
    assert opened.tobytes() == pixels


@pytest.mark.parametrize(("size", "channels"), [(11, 3), (12, 4), (8, 2)])
def test_what_is_no_picture_is_refused(size: int, channels: int) -> None:
    """A wrong number of bytes or channels raises ValueError."""
    with pytest.raises(ValueError, match="2x2"):
        png.encode(bytes(size), 2, 2, channels)
