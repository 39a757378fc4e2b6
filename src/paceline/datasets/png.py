"""Reads the PNG pictures that one mirror packs CIFAR-10 into: 8 bits, RGB, not interlaced.

Only this much of the format is understood, with nothing but the standard library.
"""

from __future__ import annotations

import array
import struct
import sys
import zlib
from collections.abc import Iterator
from itertools import accumulate

from paceline.errors import DataError

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_CHANNELS = 3
_PART = struct.Struct(">I4s")
_CHECKSUM = struct.Struct(">I")
_HEADER = struct.Struct(">IIBBBBB")
_KIND = [8, 2, 0, 0, 0]  # bits, RGB, and no other compression, filters or interlacing
_MOST_BYTES = 1 << 30
_SUB, _UP, _AVERAGE, _PAETH = 1, 2, 3, 4


def rgb_rows(raw: bytes, name: str = "the picture") -> tuple[int, Iterator[bytes]]:
    """Return the width of a picture and its rows, red, green and blue in turn."""
    try:
        width, filtered = _inflated(raw)
    except (ValueError, struct.error, zlib.error) as error:
        raise DataError(f"{name} cannot be read: {error}", hint="fetch it again") from error
    return width, _rows(filtered, 1 + width * _CHANNELS, name)


def _inflated(raw: bytes) -> tuple[int, bytes]:
    """Return the width and all rows as they were filtered, and no more than must be there."""
    header, packed = _parts(raw)
    width, height, *kind = _HEADER.unpack(header)
    expected = height * (1 + width * _CHANNELS)
    if kind != _KIND or not 0 < expected < _MOST_BYTES:
        raise ValueError("not an 8-bit RGB picture without interlacing")
    filtered = zlib.decompressobj().decompress(packed, expected + 1)
    if len(filtered) != expected:
        raise ValueError(f"{len(filtered)} bytes where {expected} belong")
    return width, filtered


def _parts(raw: bytes) -> tuple[bytes, bytes]:
    """Return the header and the packed rows, after a look at every checksum."""
    if not raw.startswith(_SIGNATURE):
        raise ValueError("not a PNG file")
    header, packed = b"", []
    at = len(_SIGNATURE)
    while at < len(raw):
        body, end = _body(raw, at)
        kind = raw[at + 4 : at + 8]
        if kind == b"IHDR":
            header = body
        elif kind == b"IDAT":
            packed.append(body)
        at = end
    return header, b"".join(packed)


def _body(raw: bytes, at: int) -> tuple[bytes, int]:
    """Return what one part holds and where it ends."""
    start = at + _PART.size
    length = _PART.unpack_from(raw, at)[0] if start <= len(raw) else 0
    end = start + length + _CHECKSUM.size
    if end > len(raw):
        raise ValueError("it is cut off")
    if zlib.crc32(raw[at + 4 : start + length]) != _CHECKSUM.unpack_from(raw, start + length)[0]:
        raise ValueError(f"the checksum of {raw[at + 4 : start]!r} is wrong")
    return raw[start : start + length], end


def _rows(filtered: bytes, stride: int, name: str) -> Iterator[bytes]:
    above = bytes(stride - 1)
    for start in range(0, len(filtered), stride):
        above = _unfilter(filtered[start], filtered[start + 1 : start + stride], above, name)
        yield above


def _unfilter(kind: int, row: bytes, above: bytes, name: str) -> bytes:
    if kind == 0:
        return row
    if kind == _SUB:
        return _running_sums(row)
    if kind == _UP:
        return bytes((here + up) & 255 for here, up in zip(row, above))
    if kind in (_AVERAGE, _PAETH):
        return _predicted(row, above, paeth=kind == _PAETH)
    raise DataError(f"{name} cannot be read: there is no filter {kind}", hint="fetch it again")


def _running_sums(row: bytes) -> bytes:
    """Undo the filter of nearly every row here: sums of a channel modulo 256, by C loops only."""
    out = bytearray(len(row))
    for channel in range(_CHANNELS):
        sums = array.array("I", accumulate(row[channel::_CHANNELS]))
        if sys.byteorder == "big":
            sums.byteswap()
        out[channel::_CHANNELS] = sums.tobytes()[:: sums.itemsize]
    return bytes(out)


def _predicted(row: bytes, above: bytes, *, paeth: bool) -> bytes:
    out = bytearray(len(row))
    for at, value in enumerate(row):
        left = out[at - _CHANNELS] if at >= _CHANNELS else 0
        corner = above[at - _CHANNELS] if at >= _CHANNELS else 0
        guess = _paeth(left, above[at], corner) if paeth else (left + above[at]) // 2
        out[at] = (value + guess) & 255
    return bytes(out)


def _paeth(left: int, up: int, corner: int) -> int:
    estimate = left + up - corner
    to_left, to_up, to_corner = abs(estimate - left), abs(estimate - up), abs(estimate - corner)
    if to_left <= to_up and to_left <= to_corner:
        return left
    return up if to_up <= to_corner else corner
