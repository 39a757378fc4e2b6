"""TensorBoard's files, read back by the rules of the format and not by our own writer."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.events import Iteration
from paceline.reporting.tensorboard import crc32c, head, scalars, scalars_of

tags = st.text(min_size=1, max_size=12).filter(lambda text: text.isprintable())


def slow_crc32c(data: bytes) -> int:
    """Return the checksum bit by bit, as its definition has it."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 * (crc & 1))
    return crc ^ 0xFFFFFFFF


def records(data: bytes) -> Iterator[bytes]:
    """Yield the content of each record of a file whose checksums are right."""

    def checked(part: bytes, stored: bytes) -> bytes:
        crc = slow_crc32c(part)
        masked = ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
        assert struct.unpack("<I", stored)[0] == masked
        return part

    while data:
        (length,) = struct.unpack("<Q", checked(data[:8], data[8:12]))
        yield checked(data[12 : 12 + length], data[12 + length : 16 + length])
        data = data[16 + length :]


def fields(data: bytes) -> Iterator[tuple[int, bytes | int]]:
    """Yield the fields of a protocol buffer's message."""

    def varint() -> int:
        nonlocal data
        value = shift = 0
        while True:
            byte, data = data[0], data[1:]
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while data:
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
            continue
        size = {1: 8, 5: 4}.get(key & 7) or varint()
        yield key >> 3, data[:size]
        data = data[size:]


def values_of(record: bytes) -> tuple[float, int, dict[str, float]]:
    """Return time, step and values of an event."""
    event = dict(fields(record))
    summary = event[5]
    assert isinstance(summary, bytes)
    found = {}
    for _, value in fields(summary):
        assert isinstance(value, bytes)
        parts = dict(fields(value))
        tag, number = parts[1], parts[2]
        assert isinstance(tag, bytes)
        assert isinstance(number, bytes)
        found[tag.decode()] = struct.unpack("<f", number)[0]
    time, step = event[1], event[2]
    assert isinstance(time, bytes)
    assert isinstance(step, int)
    return struct.unpack("<d", time)[0], step, found


@pytest.mark.parametrize(
    ("data", "expected"), [(b"", 0), (b"123456789", 0xE3069283), (b"\0" * 32, 0x8A9136AA)]
)
def test_the_checksum_is_castagnolis(data: bytes, expected: int) -> None:
    """The check values of the polynomial's own publications come out."""
    assert crc32c(data) == expected == slow_crc32c(data)


def test_a_file_begins_with_its_format() -> None:
    """The first record names the version that readers expect."""
    (record,) = records(head(12.5))
    assert dict(fields(record))[3] == b"brain.Event:2"


@given(
    st.integers(0, 2**60),
    st.floats(0, 4e9),
    st.dictionaries(tags, st.floats(allow_nan=False, width=32), max_size=4),
)
def test_what_is_written_is_read_back(step: int, time: float, values: dict[str, float]) -> None:
    """Whatever the tags, the step and the values."""
    (record,) = records(scalars(time, step, values))
    assert values_of(record) == (time, step, values)


def test_a_value_too_large_for_the_format_is_infinite() -> None:
    """A diverged loss is shown as that, and stops nobody's training."""
    (record,) = records(scalars(0.0, 1, {"loss": 1e300}))
    assert values_of(record)[2] == {"loss": float("inf")}


def test_an_iteration_becomes_scalars() -> None:
    """Metrics under their own names, speed and shares beside them; the unknown is left out."""
    event = Iteration(0, 1.0, seconds=0.5, items=16, wait_s=0.05, metrics={"loss": 2.0})
    assert scalars_of(event) == {
        "loss": 2.0,
        "speed/iteration_s": 0.5,
        "speed/items_per_s": 32.0,
        "share/waiting": 0.1,
    }
