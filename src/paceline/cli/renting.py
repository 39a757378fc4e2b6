"""Progress while hosts are rented or given back, on stderr: a bar on a terminal, else lines."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from paceline.app.observers import Unwatched
from paceline.cli import show
from paceline.ports import RentalObserver


@contextmanager
def watcher(*, quiet: bool = False) -> Iterator[RentalObserver]:
    """Yield who watches: nobody, a terminal, or a log."""
    if quiet:
        yield Unwatched()
    elif sys.stderr.isatty():
        with _terminal() as bar:
            yield bar
    else:
        yield Lines(show.say)


class Lines:
    """One line for each step, and one when so many hosts are ready."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._last = ""

    def step(self, text: str) -> None:
        """Say what is done next."""
        self._say(text)

    def progress(self, done: int, total: int, what: str) -> None:
        """Say how far it is, if that has changed."""
        line = f"{done} of {total} {what}"
        if line != self._last:
            self._last = line
            self._say(line)


@contextmanager
def _terminal() -> Iterator[RentalObserver]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True, highlight=False)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bars:
        task = bars.add_task("looking around", total=None)

        class Bar:
            def step(self, text: str) -> None:
                bars.console.print(text, markup=False, soft_wrap=True)
                bars.update(task, description=text.splitlines()[0])

            def progress(self, done: int, total: int, what: str) -> None:
                words = f"{done} of {total} {what}"
                bars.update(task, description=words, completed=done, total=total)

        yield Bar()
