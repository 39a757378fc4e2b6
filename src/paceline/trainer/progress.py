"""How a long preparation goes: a bar for people at a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from typing import TextIO

_WIDTH = 30
_LINE_EVERY_S = 2.0
_BAR_EVERY_S = 0.1


class PreparationBar:
    """Called as the data sets tell their progress; what takes no time is not shown at all."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._drawn = self._stream.isatty()
        self._every_s = _BAR_EVERY_S if self._drawn else _LINE_EVERY_S
        self._told = time.monotonic()
        self._open = False

    def __call__(self, what: str, done: int, total: int) -> None:
        """Show the progress, if it is time to."""
        now = time.monotonic()
        last = self._open and done >= total > 0
        if now - self._told < self._every_s and not last:
            return
        self._told = now
        if not self._drawn:
            self._write(f"paceline: {what}{f' {100 * done // total}%' if total else ''}\n")
            return
        self._open = not last
        self._write(f"\r{bar(what, done, total)}\x1b[K" + ("\n" if last else ""))

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


def bar(what: str, done: int, total: int) -> str:
    """Return the progress as one line of text."""
    if not total:
        return f"{what}: {done:,}"
    share = min(done / total, 1.0)
    full = int(share * _WIDTH)
    return f"{what} [{'#' * full}{'.' * (_WIDTH - full)}] {share:4.0%} ({done:,} of {total:,})"
