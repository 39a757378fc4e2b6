"""The reader of PNG pictures: the same pixels as Pillow's, and nothing but DataErrors."""

from __future__ import annotations

import contextlib
import hashlib
import io
import struct
import zlib
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.datasets import png
from paceline.errors import DataError

image_module = pytest.importorskip("PIL.Image")


def chunk(kind: bytes, body: bytes) -> bytes:
    """Return one part of a PNG file."""
    checksum = zlib.crc32(kind + body)
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", checksum)


def encoded(
    width: int, rows: Sequence[bytes], *, header: bytes = b"\x08\x02\x00\x00\x00", parts: int = 1
) -> bytes:
    """Return a PNG file of rows that are already filtered."""
    packed = zlib.compress(b"".join(rows))
    step = -(-len(packed) // parts)
    data = [chunk(b"IDAT", packed[at : at + step]) for at in range(0, len(packed), step)]
    start = chunk(b"IHDR", struct.pack(">II", width, len(rows)) + header)
    return b"\x89PNG\r\n\x1a\n" + start + b"".join(data) + chunk(b"IEND", b"")


def pixels(raw: bytes) -> bytes:
    """Return all rows that our reader finds."""
    return b"".join(png.rgb_rows(raw)[1])


@pytest.mark.parametrize("kind", range(5))
def test_every_filter_gives_the_pixels_that_pillow_gives(kind: int) -> None:
    """Whatever the rows say, both readers agree on it."""
    rows = [bytes([kind]) + hashlib.shake_256(bytes([row])).digest(3 * 17) for row in range(9)]
    raw = encoded(17, rows, parts=3)
    assert pixels(raw) == image_module.open(io.BytesIO(raw)).tobytes()


@given(width=st.integers(1, 12), height=st.integers(1, 12), seed=st.binary(), smooth=st.booleans())
def test_pictures_that_pillow_wrote_are_read(
    *, width: int, height: int, seed: bytes, smooth: bool
) -> None:
    """Its encoder chooses the filters as it likes."""
    body = hashlib.shake_256(seed).digest(3 * width * height)
    picture = image_module.frombytes("RGB", (width, height), body)
    if smooth:
        picture = picture.resize((width * 3, height * 3))
    out = io.BytesIO()
    picture.save(out, "PNG", optimize=smooth)
    found_width, rows = png.rgb_rows(out.getvalue())
    assert found_width == picture.width
    assert b"".join(rows) == picture.tobytes()


GOOD = encoded(2, [b"\x00" + bytes(6), b"\x01" + bytes(6)])


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"GIF89a", "not a PNG file"),
        (GOOD[:-20], "it is cut off"),
        (GOOD[:-3], "it is cut off"),
        (GOOD.replace(b"IDAT", b"IDAX"), "checksum"),
        (encoded(2, [bytes(7)], header=b"\x08\x06\x00\x00\x00"), "not an 8-bit RGB picture"),
        (encoded(2, [bytes(7)], header=b"\x08\x02\x00\x00\x01"), "not an 8-bit RGB picture"),
        (encoded(3, [bytes(7)]), "7 bytes where 10 belong"),
        (encoded(1, [bytes(7)]), "5 bytes where 4 belong"),
        (encoded(1 << 30, [bytes(7)]), "not an 8-bit RGB picture"),
    ],
)
def test_what_is_damaged_or_of_another_kind_is_refused(raw: bytes, reason: str) -> None:
    """A wrong picture is named, and never read as something else."""
    with pytest.raises(DataError, match=f"it.png cannot be read.*{reason}"):
        png.rgb_rows(raw, "it.png")


def test_an_unknown_filter_is_refused() -> None:
    """There are five filters."""
    with pytest.raises(DataError, match="no filter 5"):
        pixels(encoded(1, [b"\x05abc"]))


@given(st.integers(0, len(GOOD) - 1), st.binary(max_size=6))
def test_no_damage_whatever_leads_to_another_error(at: int, change: bytes) -> None:
    """A changed picture is read, or a DataError."""
    with contextlib.suppress(DataError):
        pixels(GOOD[:at] + change + GOOD[at + 1 :])
