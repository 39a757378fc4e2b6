"""A shell on a host at our own terminal, for machines that have no ssh client."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import signal
import sys
from collections.abc import AsyncIterator, Sequence

import asyncssh

from paceline.errors import TransportError
from paceline.ports import Transport
from paceline.transports.ssh.transport import SshTransport

_CHUNK_BYTES = 32 * 1024


async def converse(link: Transport, command: Sequence[str] = ()) -> int:
    """Give our terminal to a shell, or a command, on a host until it ends; return its exit code."""
    if not isinstance(link, SshTransport):
        raise TransportError("no ssh leads to it", host=link.host.name)
    connection = await link.connection()
    at_terminal = sys.stdin.isatty()
    try:
        process = await connection.create_process(
            shlex.join(command) if command else None,
            encoding=None,
            term_type=os.environ.get("TERM", "xterm") if at_terminal else None,
            term_size=_window() if at_terminal else (0, 0),
            stderr=asyncssh.STDOUT if at_terminal else asyncssh.PIPE,
        )
    except (OSError, asyncssh.Error) as error:
        raise TransportError(f"no shell was opened: {error}", host=link.host.name) from error
    async with process, _raw_terminal(process, at_terminal=at_terminal):
        out = [_pass_on(process.stdout, sys.stdout.fileno())]
        if not at_terminal:
            out.append(_pass_on(process.stderr, sys.stderr.fileno()))
        await asyncio.gather(*out)
        await process.wait_closed()
    status = process.returncode
    return 255 if status is None else status


def _window() -> tuple[int, int]:
    """Return the columns and lines of our terminal, as it is now and not as variables say."""
    size = os.get_terminal_size(sys.stdin.fileno())
    return size.columns, size.lines


async def _pass_on(reader: asyncssh.SSHReader[bytes], descriptor: int) -> None:
    while data := await reader.read(_CHUNK_BYTES):
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]


@contextlib.asynccontextmanager
async def _raw_terminal(
    process: asyncssh.SSHClientProcess[bytes], *, at_terminal: bool
) -> AsyncIterator[None]:
    """Send every key as it is pressed, and the size of the window; give the terminal back."""
    import termios  # noqa: PLC0415 - not on every system
    import tty  # noqa: PLC0415

    loop = asyncio.get_running_loop()
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor) if at_terminal else None

    def typed() -> None:
        data = os.read(descriptor, _CHUNK_BYTES)
        if data:
            process.stdin.write(data)
        else:
            loop.remove_reader(descriptor)
            process.stdin.write_eof()

    def resized() -> None:
        process.change_terminal_size(*_window())

    try:
        if before is not None:
            # By default it would drop what was typed ahead.
            tty.setraw(descriptor, termios.TCSADRAIN)
            loop.add_signal_handler(signal.SIGWINCH, resized)
        loop.add_reader(descriptor, typed)
        yield
    finally:
        loop.remove_reader(descriptor)
        if before is not None:
            loop.remove_signal_handler(signal.SIGWINCH)
            termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
