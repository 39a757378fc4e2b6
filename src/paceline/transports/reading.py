"""What a command says, read from its streams."""

from __future__ import annotations

import asyncio
import codecs
from collections.abc import AsyncGenerator

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


async def last_bytes(reader: asyncio.StreamReader, size: int) -> str:
    """Read to the end and return the last of it."""
    tail = b""
    while data := await reader.read(_CHUNK_BYTES):
        tail = (tail + data)[-size:]
    return tail.decode("utf-8", "replace")
