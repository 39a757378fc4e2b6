"""Faults on demand: what shall go wrong at which call.

A fault counts the calls that it looks at from 1 upwards, beginning when it is set. It strikes at
the `at`-th of them and at the `times - 1` that follow, or with a probability at each.
"""

from __future__ import annotations

import random
import threading
from dataclasses import dataclass, field
from typing import Literal

from paceline.rehearsal.emulator.calls import Call

Effect = Literal["refuse", "lose-reply", "cut", "kill-before", "kill-after"]


@dataclass
class Fault:
    """One thing that shall go wrong.

    `refuse`: answer with an error and do nothing. `cut`: close the connection and do nothing.
    `lose-reply`: do it, and close the connection instead of answering.
    `kill-before`, `kill-after`: end the calling process before or after the deed.
    """

    effect: Effect
    action: str | None = None
    service: str | None = None
    changing_only: bool = False
    at: int = 1
    times: int | None = 1
    probability: float | None = None
    seed: int = 0
    code: str = "InternalError"
    message: str = "A fault of the rehearsal."
    status: int = 500
    pid: int | None = None
    seen: int = field(default=0, init=False)
    struck: int = field(default=0, init=False)
    _dice: random.Random = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Take the dice into the hand."""
        self._dice = random.Random(self.seed)  # noqa: S311 - a test wants the same faults again

    def strikes(self, call: Call) -> bool:
        """Tell whether this call goes wrong; each call is shown once."""
        if not self._concerns(call):
            return False
        self.seen += 1
        if self.probability is not None:
            hit = self._dice.random() < self.probability
            hit = hit and (self.times is None or self.struck < self.times)
        else:
            hit = self.seen >= self.at and (self.times is None or self.seen < self.at + self.times)
        self.struck += hit
        return hit

    def _concerns(self, call: Call) -> bool:
        return (
            self.action in {None, call.action}
            and self.service in {None, call.service}
            and (call.changes or not self.changing_only)
        )


def throttling(probability: float, *, seed: int = 0) -> Fault:
    """Return the fault that refuses a share of all calls, as EC2 does when there are too many."""
    return Fault(
        "refuse", times=None, probability=probability, seed=seed, status=503,
        code="RequestLimitExceeded", message="Request limit exceeded.",
    )  # fmt: skip


class Faults:
    """The faults that are set now. Safe to change while calls come in."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._set: list[Fault] = []

    def add(self, fault: Fault) -> Fault:
        """Set a fault."""
        with self._lock:
            self._set.append(fault)
        return fault

    def remove(self, fault: Fault) -> None:
        """Take a fault away; one that is gone is no error."""
        with self._lock:
            self._set = [one for one in self._set if one is not fault]

    def clear(self) -> None:
        """Take all faults away."""
        with self._lock:
            self._set = []

    def all(self) -> tuple[Fault, ...]:
        """Return the faults that are set."""
        with self._lock:
            return tuple(self._set)

    def striking(self, call: Call) -> Fault | None:
        """Show a call to all faults, and return the first that strikes."""
        with self._lock:
            hits = [fault for fault in self._set if fault.strikes(call)]
        return hits[0] if hits else None
