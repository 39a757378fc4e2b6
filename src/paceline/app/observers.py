"""Who watches a study, or hosts that are rented, when nobody does."""

from __future__ import annotations

from paceline.model.live import RunNow
from paceline.model.plan import StudyPlan
from paceline.model.record import RunRecord
from paceline.model.summary import Sample, StudyProgress


class Nobody:
    """Watches and says nothing; also the base of those who listen to some of it only."""

    def planned(self, plan: StudyPlan, remaining: int) -> None:
        """Pass over."""

    def started(self, record: RunRecord) -> None:
        """Pass over."""

    def progressed(self, record: RunRecord, now: RunNow) -> None:
        """Pass over."""

    def sampled(self, sample: Sample, progress: StudyProgress) -> None:
        """Pass over."""


class Unwatched:
    """The port `RentalObserver`, for nobody."""

    def step(self, text: str) -> None:
        """Pass over."""

    def progress(self, done: int, total: int, what: str) -> None:
        """Pass over."""
