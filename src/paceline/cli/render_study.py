"""What a study found, on the terminal."""

from __future__ import annotations

from paceline.api.detaching import DetachedStudy
from paceline.cli import show
from paceline.errors import JobFailed, StorageError
from paceline.model.summary import StudyOutcome


def show_detached(begun: DetachedStudy, *, as_json: bool) -> None:
    """Print which study goes on, and how one looks on and ends it."""
    if as_json:
        show.out_json(begun)
        return
    show.out(begun.name)
    show.say(
        f"running; `paceline watch {begun.name}` shows it, `kill {begun.pid}` ends it in order; "
        f"its words go to {begun.log}"
    )


def show_study(done: StudyOutcome, *, as_json: bool) -> None:
    """Print the findings and where the report is; fail where samples are missing."""
    show.out(done.document if as_json else done.text)
    if not as_json:
        show.out(f"\nreport: {done.report_path or 'not written'}")
    if done.trouble is not None:
        raise StorageError(done.trouble)
    missing = [
        sample
        for item in done.summary.configurations
        for sample in item.samples
        if sample.failed is not None
    ]
    if not done.summary.complete:
        reasons = "\n".join(f"  {sample.sample_id}: {sample.failed}" for sample in missing)
        raise JobFailed(
            f"the study is incomplete:\n{reasons}",
            hint="the same command again takes only what is missing",
        )
