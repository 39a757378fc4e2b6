"""Input that comes while its command starts already."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

from paceline.ports import LaterInput


@contextlib.asynccontextmanager
async def feeding(
    later: LaterInput | None, give: Callable[[bytes], Awaitable[None]]
) -> AsyncIterator[None]:
    """Give a command its input as soon as it is there; where it never comes, the command waits."""
    if later is None:
        yield
        return
    task = asyncio.ensure_future(_feed(later, give))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _feed(later: LaterInput, give: Callable[[bytes], Awaitable[None]]) -> None:
    await give(await later())
