"""One command on many hosts at once: every host's result comes back, whatever the others do."""

from __future__ import annotations

import asyncio
import contextlib
import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from paceline.errors import JobFailed, PacelineError, TransportError
from paceline.model.command import Command, render
from paceline.ports import Transport

OnHostLine = Callable[[str, str, str], None]
"""Called with a host's name, `stdout` or `stderr`, and a line without its end."""

_EXCERPT_LINES = 5
_SHOWN_CHARS = 200
# So many hosts are spoken to at once. Each needs about ten round trips, so that 64 at a time would
# leave the processor idle where the hosts are far away; and even on a machine that is ten times
# slower so many handshakes end within the limit of time that each has.
_AT_ONCE = 256
# By default the collector looks after every 700 new objects, and now and then walks through all
# that belong to open connections: a sixth of a fan-out's processor time (500 hosts, medians of
# 4 runs in turns: 1.00 s with it, 0.86 s without). Counting references frees nearly everything.
_NEW_OBJECTS = 50_000


@dataclass(frozen=True)
class HostResult:
    """What became of a command on one host; `exit_code` is None where it could not be run."""

    host: str
    exit_code: int | None
    stdout: str = ""
    stderr: str = ""
    error: PacelineError | None = None

    @property
    def ok(self) -> bool:
        """Whether the command succeeded there."""
        return self.exit_code == 0


async def run_everywhere(
    links: Mapping[str, Transport],
    command: Command,
    *,
    on_line: OnHostLine | None = None,
    timeout_s: float | None = None,
) -> tuple[HostResult, ...]:
    """Run a command on all hosts at once and return every host's result, in their order.

    Where they are more than are spoken to at once, each is let go when it has answered: a
    connection is an open file, and a system allows so many of these.
    """
    turn = asyncio.Semaphore(_AT_ONCE)
    let_go = len(links) > _AT_ONCE

    async def one(name: str, link: Transport) -> HostResult:
        def tell(stream: str, line: str) -> None:
            if on_line is not None:
                on_line(name, stream, line)

        async with turn:
            try:
                done = await link.run(command, timeout_s=timeout_s, on_line=tell)
            except PacelineError as error:
                return HostResult(name, None, error=error)
            finally:
                if let_go:
                    await link.close()
        return HostResult(name, done.exit_code, done.stdout, done.stderr)

    with _collecting_seldom():
        return tuple(await asyncio.gather(*(one(name, link) for name, link in links.items())))


@contextlib.contextmanager
def _collecting_seldom() -> Iterator[None]:
    """Let the garbage collector look less often; where it already does, or is off, nothing."""
    before = gc.get_threshold()
    if not 0 < before[0] < _NEW_OBJECTS:
        yield
        return
    gc.set_threshold(_NEW_OBJECTS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def require_success(command: Command, results: Sequence[HostResult]) -> None:
    """Raise what names every host where a command failed, its exit code and its last words."""
    failed = [result for result in results if not result.ok]
    if not failed:
        return
    if len(failed) == 1 and failed[0].error is not None:
        raise failed[0].error
    unreached = all(result.error is not None for result in failed)
    kind = TransportError if unreached else JobFailed
    words = "\n".join(_complaint(command, result) for result in failed)
    count = f"{len(failed)} of {len(results)} hosts failed:\n" if len(failed) > 1 else ""
    raise kind(f"{count}{words}", hint=next((r.error.hint for r in failed if r.error), None))


def _complaint(command: Command, result: HostResult) -> str:
    if result.error is not None:
        return str(result.error)
    line = render(command)
    shown = line if len(line) <= _SHOWN_CHARS else f"{line[:_SHOWN_CHARS]} …"
    said = [text for text in result.stderr.splitlines() if text.strip()][-_EXCERPT_LINES:]
    what = f"`{shown}` failed with exit code {result.exit_code}"
    if result.exit_code is not None and result.exit_code < 0:
        what = f"`{shown}` was ended by signal {-result.exit_code}"
    return "\n".join([f"{result.host}: {what}", *(f"    {text}" for text in said)])
