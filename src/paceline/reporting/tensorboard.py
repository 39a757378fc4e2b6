"""Scalars in the file format that TensorBoard reads: records of protocol buffers with checksums.

Only what scalars need is written: the event with its time and step, and in it one value per tag.
A library for that would bring a hundred times the code.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping

from paceline.events import Iteration

_VERSION = "brain.Event:2"
_CASTAGNOLI = 0x82F63B78
_MASK = 0xA282EAD8
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


def head(wall_time: float) -> bytes:
    """Return the first record of a file, which names the format."""
    text = _VERSION.encode()
    return _record(_fixed64(1, wall_time) + _bytes(3, text))


def scalars(wall_time: float, step: int, values: Mapping[str, float]) -> bytes:
    """Return a record with one value per tag."""
    told = b"".join(
        _bytes(1, _bytes(1, tag.encode()) + _fixed32(2, value)) for tag, value in values.items()
    )
    return _record(_fixed64(1, wall_time) + _varint(2, step) + _bytes(5, told))


def scalars_of(event: Iteration) -> dict[str, float]:
    """Return what TensorBoard shows of an iteration."""
    values = {str(name): float(value) for name, value in event.metrics.items()}
    values["speed/iteration_s"] = event.seconds
    if event.items is not None and event.seconds > 0:
        values["speed/items_per_s"] = event.items / event.seconds
    for name, part_s in (("waiting", event.wait_s), ("input", event.data_s)):
        if part_s is not None and event.seconds > 0:
            values[f"share/{name}"] = part_s / event.seconds
    return values


def crc32c(data: bytes) -> int:
    """Return the checksum of Castagnoli, which zlib does not have."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


def _table() -> Iterator[int]:
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = (value >> 1) ^ (_CASTAGNOLI if value & 1 else 0)
        yield value


_TABLE = tuple(_table())


def _record(data: bytes) -> bytes:
    length = struct.pack("<Q", len(data))
    return length + _checksum(length) + data + _checksum(data)


def _checksum(data: bytes) -> bytes:
    crc = crc32c(data)
    rotated = ((crc >> 15) | (crc << 17)) & 0xFFFFFFFF
    return struct.pack("<I", (rotated + _MASK) & 0xFFFFFFFF)


def _key(field: int, kind: int) -> bytes:
    return bytes([field << 3 | kind])


def _number(value: int) -> bytes:
    low, value = value & 0x7F, value >> 7
    return bytes([low]) if not value else bytes([low | 0x80]) + _number(value)


def _varint(field: int, value: int) -> bytes:
    return _key(field, _VARINT) + _number(value)


def _fixed64(field: int, value: float) -> bytes:
    return _key(field, _FIXED64) + struct.pack("<d", value)


def _fixed32(field: int, value: float) -> bytes:
    return _key(field, _FIXED32) + _float(value)


def _float(value: float) -> bytes:
    try:
        return struct.pack("<f", value)
    except OverflowError:  # larger than single precision: TensorBoard shows it as infinite
        return struct.pack("<f", float("inf") if value > 0 else float("-inf"))


def _bytes(field: int, data: bytes) -> bytes:
    return _key(field, _BYTES) + _number(len(data)) + data
