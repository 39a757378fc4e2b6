"""Trainings that take turns on one machine: while one runs, the others are stopped by a signal.

All are started once. A turn is a few iterations; the ratio of two neighbouring turns is one
sample, so a machine that gets slower for a while slows both sides of a sample. The iteration in
which a training was stopped is left out. Times are those between the ends of iterations, as
the events tell them, so all that happens between two steps counts.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

from paceline.measure.statistics import estimate
from paceline.model.summary import Estimate
from paceline.rehearsal.network import LabHost

SOURCES = Path(__file__).resolve().parents[1] / "src"
WARMUP = 3
_PATIENCE_S = 240.0
_LOOK_EVERY_S = 0.03
# What is still in the sockets of stopped ranks leaves within this time.
_DRAIN_S = 0.3


def free_port() -> int:
    """Return a port that nobody listens at just now."""
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        return int(made.getsockname()[1])


@dataclass
class Training:
    """One training with a rank on each host (None: here, without a network)."""

    name: str
    argv: tuple[str, ...]
    folder: Path
    hosts: tuple[LabHost | None, ...] = (None,)
    port: int = field(default_factory=free_port)
    sent_bytes: float = 0.0
    cpu_s: float = 0.0
    iterations: int = 0
    _ranks: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(self) -> None:
        """Start the ranks, let them warm up, and stop them."""
        (self.folder / "events").mkdir(parents=True)
        for rank, host in enumerate(self.hosts):
            folder = self.folder / f"rank-{rank}"
            folder.mkdir(parents=True)
            # Each rank leads a process group, so that its loader's workers are stopped with it.
            self._ranks.append(
                subprocess.Popen(
                    self.argv if host is None else host.inside(self.argv),
                    env=self._environment(rank),
                    cwd=folder,
                    stdout=subprocess.DEVNULL,
                    stderr=(folder / "stderr").open("wb"),
                    start_new_session=True,
                )
            )
        self._until(0, WARMUP)
        self._signal(signal.SIGSTOP)

    def end(self) -> None:
        """End the ranks; nothing of value is in them."""
        self._signal(signal.SIGKILL)
        for rank in self._ranks:
            rank.wait()

    def turn(self, iterations: int) -> list[list[dict[str, Any]]]:
        """Run for so many iterations and a bit; return each rank's iteration events of it.

        The first event is the end of the iteration that was interrupted: only the time after it
        counts.
        """
        known = self._done()
        before, worked = self._sent(), self._worked_s()
        self._signal(signal.SIGCONT)
        self._until(known, iterations + 1)
        self._signal(signal.SIGSTOP)
        time.sleep(_DRAIN_S)
        self.sent_bytes += self._sent() - before
        self.cpu_s += self._worked_s() - worked
        self.iterations += self._done() - known
        return [events[known:] for events in self._events()]

    @property
    def cpu_of_iteration_s(self) -> float:
        """The processor time of a rank, its loader's workers left out, for each iteration.

        It hardly depends on who else is at work on the machine.
        """
        return self.cpu_s / self.iterations

    def _worked_s(self) -> float:
        ticks = []
        for rank in self._ranks:
            # What follows the name, which may hold blanks: state is field 3, utime field 14.
            fields = Path(f"/proc/{rank.pid}/stat").read_text().rpartition(")")[2].split()
            ticks.append(int(fields[11]) + int(fields[12]))
        return fmean(ticks) / os.sysconf("SC_CLK_TCK")

    def _sent(self) -> float:
        return fmean(0 if host is None else host.sent_bytes() for host in self.hosts)

    def _done(self) -> int:
        # Counted, not parsed: who watches must not take the processor from who is watched.
        return min(_count(self._path(rank)) for rank in range(len(self.hosts)))

    def _events(self) -> list[list[dict[str, Any]]]:
        return [_iterations(self._path(rank)) for rank in range(len(self.hosts))]

    def _path(self, rank: int) -> Path:
        return self.folder / "events" / f"rank-{rank}.jsonl"

    def _until(self, known: int, more: int) -> None:
        give_up_at = time.monotonic() + _PATIENCE_S
        while self._done() < known + more:
            gone = [rank.poll() is not None for rank in self._ranks]
            if any(gone) or time.monotonic() > give_up_at:
                said = (
                    self.folder / f"rank-{gone.index(True) if any(gone) else 0}/stderr"
                ).read_text()
                sys.exit(f"{self.name} {'ended' if any(gone) else 'hangs'}: {said}")
            time.sleep(_LOOK_EVERY_S)

    def _signal(self, number: signal.Signals) -> None:
        for rank in self._ranks:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(rank.pid, number)

    def _environment(self, rank: int) -> dict[str, str]:
        first = self.hosts[0]
        return {
            **os.environ,
            "PYTHONPATH": str(SOURCES),
            "PACELINE_EVENTS": str(self.folder / "events"),
            "PACELINE_OUT": str(self.folder / "out"),
            "OMP_NUM_THREADS": "1",
            "RANK": str(rank),
            "LOCAL_RANK": "0",
            "WORLD_SIZE": str(len(self.hosts)),
            "LOCAL_WORLD_SIZE": "1",
            "MASTER_ADDR": first.address if first else "127.0.0.1",
            "MASTER_PORT": str(self.port),
            "GLOO_SOCKET_IFNAME": "eth0" if first else "lo",
        }


def _count(path: Path) -> int:
    return path.read_bytes().count(b'"kind":"iteration"') if path.exists() else 0


def _iterations(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    lines = path.read_text().splitlines(keepends=True)
    events = [json.loads(line) for line in lines if line.endswith("\n")]
    return [event for event in events if event["kind"] == "iteration"]


@contextlib.contextmanager
def started(trainings: Sequence[Training]) -> Iterator[None]:
    """Start trainings one after the other, and end them all."""
    with contextlib.ExitStack() as stack:
        for training in trainings:
            stack.callback(training.end)
            training.start()
        yield


Figure = Callable[[list[list[dict[str, Any]]]], float]


def iteration_s(turn: list[list[dict[str, Any]]]) -> float:
    """Return the mean time between the ends of iterations, of the slowest rank."""
    spans = [float(events[-1]["t"] - events[0]["t"]) / (len(events) - 1) for events in turn]
    return max(spans)


def bare_step_s(turn: list[list[dict[str, Any]]]) -> float:
    """Return the mean time of the steps alone: no input, nothing between them."""
    steps = [event["seconds"] - (event.get("data_s") or 0.0) for event in turn[0][1:]]
    return fmean(steps)


@dataclass(frozen=True)
class Duel:
    """What two trainings took in neighbouring turns."""

    first: Estimate
    second: Estimate
    ratio: Estimate


def duel(
    first: tuple[Training, Figure], second: tuple[Training, Figure], *, turns: int, iterations: int
) -> Duel:
    """Let two trainings take turns; the ratio is first / second."""
    samples: list[tuple[float, float]] = []
    for number in range(turns):
        # Who begins changes, so that a steady drift favours neither.
        order = (first, second) if number % 2 == 0 else (second, first)
        found = {training.name: figure(training.turn(iterations)) for training, figure in order}
        samples.append((found[first[0].name], found[second[0].name]))
    return Duel(
        _known(a for a, _ in samples),
        _known(b for _, b in samples),
        paired_ratio(samples),
    )


def paired_ratio(samples: Sequence[tuple[float, float]]) -> Estimate:
    """Return the geometric mean of the samples' ratios with its 95% interval."""
    logs = _known(math.log(a / b) for a, b in samples)
    low, high = (None if bound is None else math.exp(bound) for bound in (logs.low, logs.high))
    mean = math.exp(logs.mean)
    spread = None if logs.spread is None else mean * logs.spread
    return Estimate(logs.n, mean, math.exp(logs.median), spread, low, high)


def _known(values: Iterator[float]) -> Estimate:
    found = estimate(values)
    assert found is not None
    return found
