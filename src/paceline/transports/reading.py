"""What a command says, read from its streams."""

from __future__ import annotations

import asyncio
import codecs
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from functools import partial
from typing import Any

from paceline.ports import OnLine

_CHUNK_BYTES = 64 * 1024


async def lines_of(reader: asyncio.StreamReader) -> AsyncGenerator[str, None]:
    """Yield lines as they come, without their ends, however long they are."""
    decode = codecs.getincrementaldecoder("utf-8")("replace").decode
    begun = ""
    while data := await reader.read(_CHUNK_BYTES):
        *whole, begun = (begun + decode(data)).split("\n")
        for line in whole:
            yield line
    begun += decode(b"", final=True)
    if begun:
        yield begun


def told(
    readers: Sequence[asyncio.StreamReader], on_line: OnLine | None
) -> tuple[Coroutine[Any, Any, str], ...]:
    """Return the reading of stdout and stderr to their ends; each line is told as it comes."""
    listeners = [on_line and partial(on_line, name) for name in ("stdout", "stderr")]
    return tuple(map(_all_of, readers, listeners))


async def _all_of(reader: asyncio.StreamReader, on_line: Callable[[str], None] | None) -> str:
    """Read to the end and return all of it; tell each line as it comes."""
    if on_line is None:
        return (await reader.read()).decode("utf-8", "replace")
    decode = codecs.getincrementaldecoder("utf-8")("replace").decode
    told, begun = [], ""
    data = b"first"
    while data:
        data = await reader.read(_CHUNK_BYTES)
        text = decode(data, final=not data)
        told.append(text)
        *whole, begun = (begun + text).split("\n")
        for line in whole:
            on_line(line)
    if begun:
        on_line(begun)
    return "".join(told)


async def last_bytes(reader: asyncio.StreamReader, size: int) -> str:
    """Read to the end and return the last of it."""
    tail = b""
    while data := await reader.read(_CHUNK_BYTES):
        tail = (tail + data)[-size:]
    return tail.decode("utf-8", "replace")
