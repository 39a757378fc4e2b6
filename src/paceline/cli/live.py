"""Progress on stderr: a bar and a running table on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from paceline.app.observers import Nobody
from paceline.cli import board, show
from paceline.model.live import RunNow
from paceline.model.plan import StudyPlan
from paceline.model.record import RunRecord
from paceline.model.summary import Sample, StudyProgress
from paceline.ports import StudyObserver

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live

# A run that goes on before the study has been planned is one that somebody else has started.
TAKING_OVER = "taking over a run that is left from before"
_BAR_WIDTH = 60
_RUN_LINE_EVERY_S = 10.0
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
    """One line per sample, for logs and pipes; of runs too, every so many seconds, if wanted."""

    def __init__(
        self,
        *,
        say: Callable[[str], None] = show.say,
        run_every_s: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._say = say
        self._run_every_s = run_every_s
        self._clock = clock
        self._planned = False
        self._said_at: float | None = None

    def planned(self, plan: StudyPlan, remaining: int) -> None:
        """Say how much there is to do."""
        self._planned = True
        done = len(plan.samples) - remaining
        known = f", {done} of them taken already" if done else ""
        self._say(f"study {plan.name}: {len(plan.samples)} samples{known}")
        for note in plan.notes:
            self._say(f"note: {note}")

    def started(self, record: RunRecord) -> None:
        """Say what is waited for before the study itself goes on."""
        if not self._planned and self._run_every_s is None:
            self._say(f"{TAKING_OVER}: {record.run_id}")

    def progressed(self, record: RunRecord, now: RunNow) -> None:
        """Say how a run stands, if that is wanted and was not said just now."""
        at = self._clock()
        if self._run_every_s is None:
            return
        if self._said_at is None or at - self._said_at >= self._run_every_s:
            self._said_at = at
            self._say(f"{run_title(record)}: {board.run_words(now)}")

    def sampled(self, sample: Sample, progress: StudyProgress) -> None:
        """Say what a sample gave and how long the rest will take."""
        self._say(f"[{progress.done}/{progress.total}] {sample_line(sample, progress)}")


def run_title(record: RunRecord) -> str:
    """Return a run in words: the sample of a study, or its own name."""
    if record.sample_index is None:
        return record.run_id
    return f"{record.configuration.title}, sample {record.sample_index}"


def sample_line(sample: Sample, progress: StudyProgress) -> str:
    """Return one sample in a line."""
    if sample.failed is not None:
        result = f"failed: {sample.failed.splitlines()[0]}"
    elif sample.items_per_s is not None:
        result = f"{sample.items_per_s:.1f} {progress.summary.unit}/s"
    else:
        result = show.duration(sample.wall_s)
    left = progress.remaining_s
    rest = [f"{board.roughly(progress)} {show.duration(left)} left"] if left else []
    rest += [words] if (words := board.money(progress)) else []
    words = f"{sample.configuration.title} · sample {sample.index}: {result}"
    return " · ".join([words, *rest])


class TerminalBoard(Nobody):
    """A bar over the whole study, the run that goes on with its ranks, and the table so far."""

    def __init__(
        self,
        live: Live,
        clock: Callable[[], float] = time.monotonic,
        *,
        looking_on: bool = False,
    ) -> None:
        self._live = live
        self._clock = clock
        self._looking_on = looking_on
        self._total = 0
        self._done = 0
        self._now = RunNow("", 0.0)
        self._title = ""
        self._latest = ""
        self._progress: StudyProgress | None = None
        self._left_at: tuple[float, float] | None = None
        self._taken_before = 0
        self._begun = clock()

    def planned(self, plan: StudyPlan, remaining: int) -> None:
        """Take in how much there is to do; what the plan has to say stays on the screen."""
        from rich.text import Text

        self._total = len(plan.samples)
        self._done = self._taken_before = self._total - remaining
        self._now, self._title = RunNow("starting", 0.0), ""
        self._begun = self._clock()
        for note in plan.notes:
            self._live.console.print(Text(f"note: {note}"), soft_wrap=True)
        self._draw()

    def started(self, record: RunRecord) -> None:
        """Take in which run goes on."""
        self.progressed(record, RunNow("starting", 0.0))

    def progressed(self, record: RunRecord, now: RunNow) -> None:
        """Take in how far the run is."""
        self._now = now
        title = run_title(record)
        taken_over = not self._total and not self._looking_on
        self._title = f"{TAKING_OVER}: {title}" if taken_over else title
        self._draw()

    def sampled(self, sample: Sample, progress: StudyProgress) -> None:
        """Take in a result."""
        self._done, self._now, self._title = progress.done, RunNow("", 0.0), ""
        if progress.remaining_s is not None:
            self._left_at = (progress.remaining_s, self._clock())
        self._progress = progress
        self._latest = sample_line(sample, replace(progress, remaining_s=None, spent_usd=None))
        self._draw()

    def _left(self) -> str:
        if not self._total or self._done >= self._total:
            return ""
        now = self._clock()
        if self._left_at is not None:
            left, at = self._left_at
            roughly = board.roughly(self._progress)
            return f"{roughly} {show.duration(max(0.0, left - (now - at)))} left"
        # What was taken by an earlier process has cost this one no time.
        to_do = max(1, self._total - self._taken_before)
        share = (self._done + (self._now.fraction or 0.0) - self._taken_before) / to_do
        if share < 0.02:  # noqa: PLR2004 - below this a guess would only jump about
            return "estimating the time left"
        return f"about {show.duration((now - self._begun) * (1 - share) / share)} left"

    def _head(self) -> str:
        count = f"{self._done}/{self._total} samples" if self._total else ""
        spent = board.money(self._progress) if self._progress is not None else ""
        return " · ".join(part for part in (count, self._left(), spent) if part)

    def _draw(self) -> None:
        from rich.console import Group

        self._live.update(Group(*self._parts(self._live.console.width)))

    def _parts(self, width: int) -> list[RenderableType]:
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        doing = [self._title, board.run_words(self._now)] if self._title else []
        lines = [
            (self._head(), ""),
            (": ".join(doing) or self._latest, "dim"),
            (board.rank_table(self._now, width=width), ""),
            (self._table(width), ""),
        ]
        share = self._now.fraction or 0.0
        bar = Table.grid()  # the bar itself does not end its line
        bar.add_row(
            ProgressBar(
                total=max(1, self._total),
                completed=self._done + share,
                width=min(width, _BAR_WIDTH),
            )
        )
        texts = [
            Text(words, style=style, no_wrap=True, overflow="ellipsis")
            for words, style in lines
            if words
        ]
        return [bar, *texts]

    def _table(self, width: int) -> str:
        if self._progress is None:
            return ""
        from paceline.reporting import text

        return text.table(self._progress.summary, width=width)


@contextmanager
def onlooker() -> Iterator[StudyObserver]:
    """Yield who looks on from another terminal: what is shown is the result, and so on stdout."""
    if sys.stdout.isatty():
        with _terminal(stderr=False, looking_on=True) as watcher:
            yield watcher
    else:
        yield PlainLines(say=show.out, run_every_s=_RUN_LINE_EVERY_S)


@contextmanager
def _terminal(*, stderr: bool = True, looking_on: bool = False) -> Iterator[TerminalBoard]:
    from rich.console import Console
    from rich.live import Live

    console = Console(stderr=stderr, highlight=False)
    # What somebody looks on at stays on the screen; a study prints its own findings.
    with Live(console=console, refresh_per_second=1 / _REFRESH_S, transient=not looking_on) as live:
        yield TerminalBoard(live, looking_on=looking_on)


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
