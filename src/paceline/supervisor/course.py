"""Where a job is heading, as a value: decisions without processes, clocks or files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from paceline.supervisor.job import FAILED, INTERRUPTED, STOPPED, SUCCEEDED, TIMEOUT

# A process that SIGKILL does not end within this hangs in the kernel; nobody can wait it out.
GIVE_UP_S = 30.0


@dataclass(frozen=True)
class Course:
    """Which processes run, what the job comes to, and by when the rest must be gone.

    All times are those of one monotonic clock. `outcome` is settled once and stays; from then
    on everything that still lives is asked to end, and is killed at `kill_at`.
    """

    running: frozenset[str]
    timeout_at: float | None = None
    wind_down_at: float | None = None
    outcome: str | None = None
    kill_at: float | None = None

    @property
    def ending(self) -> bool:
        """Whether what still lives has to end."""
        return self.outcome is not None

    def after_exits(self, codes: Mapping[str, int], now: float, grace_s: float) -> Course:
        """Take note of processes that have ended."""
        course = replace(self, running=self.running - codes.keys())
        if any(codes.values()):
            return course.heading(FAILED, now, grace_s)
        return course if course.running else course.heading(SUCCEEDED, now, grace_s)

    def after_time(self, now: float, grace_s: float) -> Course:
        """Take note of the time."""
        if self.timeout_at is not None and now >= self.timeout_at:
            return self.heading(TIMEOUT, now, grace_s)
        if self.wind_down_at is not None and now >= self.wind_down_at:
            return self.heading(INTERRUPTED, now, grace_s)
        return self

    def after_notice(self, now: float, wind_down_s: float) -> Course:
        """Take note that the machine will be taken back: what still runs then has to end."""
        return replace(self, wind_down_at=now + wind_down_s)

    def after_stop_request(self, now: float, grace_s: float) -> Course:
        """Take note that somebody wants the job stopped; a shorter grace holds at any time."""
        if self.kill_at is None:
            return self.heading(STOPPED, now, grace_s)
        return replace(self, kill_at=min(self.kill_at, now + grace_s))

    def heading(self, outcome: str, now: float, grace_s: float) -> Course:
        """Settle the outcome, unless it is settled already."""
        if self.ending:
            return self
        return replace(self, outcome=outcome, kill_at=now + grace_s)

    def must_kill(self, now: float) -> bool:
        """Whether the time to end by oneself is over."""
        return self.kill_at is not None and now >= self.kill_at

    def is_hopeless(self, now: float) -> bool:
        """Whether what is left will not go away."""
        return self.kill_at is not None and now >= self.kill_at + GIVE_UP_S

    def next_deadline(self) -> float | None:
        """Return the time at which something happens by itself."""
        if self.ending:
            return self.kill_at
        times = [at for at in (self.timeout_at, self.wind_down_at) if at is not None]
        return min(times, default=None)
