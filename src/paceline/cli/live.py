"""Progress on stderr: a bar and a running table on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from paceline.app.observers import Nobody
from paceline.cli import show
from paceline.model.live import RunNow
from paceline.model.plan import StudyPlan
from paceline.model.record import RunRecord
from paceline.model.summary import Sample, StudyProgress
from paceline.ports import StudyObserver

if TYPE_CHECKING:
    from rich.live import Live

# A run that goes on before the study has been planned is one that somebody else has started.
TAKING_OVER = "taking over a run that is left from before"
_REFRESH_S = 0.5  # a livelier display would take cores from the ranks that are measured


@contextmanager
def observer(*, quiet: bool) -> Iterator[StudyObserver]:
    """Yield who watches a study: nobody, a terminal, or a log."""
    if quiet:
        yield Nobody()
    elif sys.stderr.isatty():
        with _terminal() as watcher:
            yield watcher
    else:
        yield PlainLines()


class PlainLines(Nobody):
    """One line per sample, for logs and pipes."""

    def __init__(self) -> None:
        self._planned = False

    def planned(self, plan: StudyPlan, remaining: int) -> None:
        """Say how much there is to do."""
        self._planned = True
        done = len(plan.samples) - remaining
        known = f", {done} of them taken already" if done else ""
        show.say(f"study {plan.name}: {len(plan.samples)} samples{known}")
        for note in plan.notes:
            show.say(f"note: {note}")

    def started(self, record: RunRecord) -> None:
        """Say what is waited for before the study itself goes on."""
        if not self._planned:
            show.say(f"{TAKING_OVER}: {record.run_id}")

    def sampled(self, sample: Sample, progress: StudyProgress) -> None:
        """Say what a sample gave and how long the rest will take."""
        show.say(f"[{progress.done}/{progress.total}] {sample_line(sample, progress)}")


def sample_line(sample: Sample, progress: StudyProgress) -> str:
    """Return one sample in a line."""
    if sample.failed is not None:
        result = f"failed: {sample.failed.splitlines()[0]}"
    elif sample.items_per_s is not None:
        result = f"{sample.items_per_s:.1f} {progress.summary.unit}/s"
    else:
        result = show.duration(sample.wall_s)
    left = progress.remaining_s
    rest = f" · about {show.duration(left)} left" if left else ""
    return f"{sample.configuration.title} · sample {sample.index}: {result}{rest}"


class TerminalBoard(Nobody):
    """A bar over the whole study, the run that goes on, and the table so far."""

    def __init__(self, live: Live, clock: Callable[[], float] = time.monotonic) -> None:
        self._live = live
        self._clock = clock
        self._total = 0
        self._done = 0
        self._fraction = 0.0
        self._doing = "planning"
        self._table = ""
        self._left_at: tuple[float, float] | None = None
        self._taken_before = 0
        self._begun = clock()

    def planned(self, plan: StudyPlan, remaining: int) -> None:
        """Take in how much there is to do; what the plan has to say stays on the screen."""
        from rich.text import Text

        self._total = len(plan.samples)
        self._done = self._taken_before = self._total - remaining
        self._fraction = 0.0
        self._doing = "starting"
        self._begun = self._clock()
        for note in plan.notes:
            self._live.console.print(Text(f"note: {note}"), soft_wrap=True)
        self._draw()

    def started(self, record: RunRecord) -> None:
        """Take in which run goes on."""
        self._fraction = 0.0
        self._doing = f"{self._title(record)}: starting"
        self._draw()

    def progressed(self, record: RunRecord, now: RunNow) -> None:
        """Take in how far the run is."""
        self._fraction = now.fraction or 0.0
        self._doing = f"{self._title(record)}: {now.text}"
        self._draw()

    def sampled(self, sample: Sample, progress: StudyProgress) -> None:
        """Take in a result."""
        self._done, self._fraction = progress.done, 0.0
        if progress.remaining_s is not None:
            self._left_at = (progress.remaining_s, self._clock())
        self._table = progress.table
        self._doing = sample_line(sample, progress)
        self._draw()

    def _title(self, record: RunRecord) -> str:
        words = f"{record.configuration.title}, sample {record.sample_index}"
        return words if self._total else f"{TAKING_OVER}: {words}"

    def _left(self) -> str:
        if not self._total:
            return ""
        now = self._clock()
        if self._left_at is not None:
            left, at = self._left_at
            return f"about {show.duration(max(0.0, left - (now - at)))} left"
        # What was taken by an earlier process has cost this one no time.
        to_do = max(1, self._total - self._taken_before)
        share = (self._done + self._fraction - self._taken_before) / to_do
        if share < 0.02:  # noqa: PLR2004 - below this a guess would only jump about
            return "estimating the time left"
        return f"about {show.duration((now - self._begun) * (1 - share) / share)} left"

    def _draw(self) -> None:
        from rich.console import Group, RenderableType
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        head = Table.grid(padding=(0, 1))
        bar = ProgressBar(
            total=max(1, self._total), completed=self._done + self._fraction, width=40
        )
        count = f"{self._done}/{self._total} samples · " if self._total else ""
        head.add_row(bar, Text(f"{count}{self._left()}"))
        doing = Text(self._doing, style="dim", no_wrap=True, overflow="ellipsis")
        parts: list[RenderableType] = [head, doing]
        if self._table:
            parts.append(Text(self._table, no_wrap=True))
        self._live.update(Group(*parts))


@contextmanager
def _terminal() -> Iterator[TerminalBoard]:
    from rich.console import Console
    from rich.live import Live

    console = Console(stderr=True)
    with Live(console=console, refresh_per_second=1 / _REFRESH_S, transient=True) as live:
        yield TerminalBoard(live)


@contextmanager
def byte_progress(title: str) -> Iterator[Callable[[str, int, int], None]]:
    """Yield what shows a download or a conversion: (what, done, total)."""
    if not sys.stderr.isatty():
        show.say(title)
        yield lambda _what, _done, _total: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bars:
        tasks = {title: bars.add_task(title, total=None)}

        def update(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=total or None)
            bars.update(tasks[what], completed=done, total=total or None)

        yield update
