"""What the supervisors of one job know of each other, as values: no sockets, threads or clocks.

    first host ──┬── second host        every line carries a beat each second, both ways,
                 └── third host …       and news: how the job ends somewhere, or who is silent

Without this, nobody would notice a host that vanishes from a job that nobody follows: the ranks
on the other hosts, and those on the lost one, would wait for each other until a watchdog comes.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from paceline.supervisor.job import LOST, FirstFailure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

BEAT_S = 1.0
# A machine at its limits, or a process that was paused, is late by seconds, and not lost. Ranks
# that do not end when they are asked may take a few more; all is over within 15 s.
PATIENCE_S = 8.0
LOSS_GRACE_S = 5.0
# As long as the ranks themselves may take to find each other.
LAUNCH_PATIENCE_S = 120.0
# Silence counts only while we listen: who was paused or starved has not listened meanwhile.
LONGEST_STEP_S = 2.0


@dataclass(frozen=True)
class News:
    """That a host is lost, or that the job ends on a host as it should not.

    `at` is when the host was last heard (Unix time), by the clock of whoever noticed.
    """

    host: str
    outcome: str
    silent_s: float = 0.0
    at: float = 0.0

    @property
    def is_loss(self) -> bool:
        """Whether the host is silent, and not just in trouble."""
        return self.outcome == LOST

    @property
    def sentence(self) -> str:
        """The same for people."""
        if self.is_loss:
            silent = f"no word from its supervisor for {self.silent_s:.0f} s"
            return f"the host {self.host} is lost: {silent}"
        return f"the job was stopped because it ended on {self.host}: {self.outcome}"

    def failure(self) -> FirstFailure:
        """Return what a job ended of whose host is lost."""
        return FirstFailure("", None, "", self.sentence, host=self.host, at=self.at)


@dataclass(frozen=True)
class Silence:
    """For how long a host has said nothing, and for how long it may."""

    so_far_s: float
    patience_s: float


@dataclass(frozen=True)
class Ears:
    """Whom we listen to, and for how long each has been silent while we listened."""

    silences: Mapping[str, Silence] = field(default_factory=dict)

    def waiting_for(self, host: str, patience_s: float) -> Ears:
        """Begin to wait for a host."""
        return Ears({**self.silences, host: Silence(0.0, patience_s)})

    def heard(self, host: str) -> Ears:
        """Take note of a word from a host."""
        return self.waiting_for(host, PATIENCE_S)

    def without(self, host: str) -> Ears:
        """Listen to a host no more."""
        return Ears({name: item for name, item in self.silences.items() if name != host})

    def listened(self, elapsed_s: float) -> Ears:
        """Take note of time in which nothing was heard, other than what is noted hereafter."""
        step_s = min(max(elapsed_s, 0.0), LONGEST_STEP_S)
        return Ears(
            {
                name: Silence(item.so_far_s + step_s, item.patience_s)
                for name, item in self.silences.items()
            }
        )

    @property
    def lost(self) -> tuple[tuple[str, float], ...]:
        """The hosts that were silent for too long, and for how long they were."""
        return tuple(
            (name, item.so_far_s)
            for name, item in self.silences.items()
            if item.so_far_s >= item.patience_s
        )
