"""Questions to whoever sits at the terminal, asked without holding up anything else."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable


def question_asker() -> Callable[[str], Awaitable[bool]] | None:
    """Return what asks a yes-or-no question; None where nobody sits at a terminal."""
    if not (sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()):
        return None
    turn = asyncio.Lock()

    async def ask(question: str) -> bool:
        # Hosts are reached side by side, but a person answers one question after another.
        async with turn:
            sys.stderr.write(f"{question} [yes/no] ")
            sys.stderr.flush()
            return (await _next_line()).strip().lower() in ("y", "yes")

    return ask


async def _next_line() -> str:
    """Wait for a line on stdin in a way that Ctrl-C can end."""
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(sys.stdin.fileno(), ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(sys.stdin.fileno())
    return sys.stdin.readline()
