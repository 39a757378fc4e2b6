"""What the event stream costs, and knowing where the time goes: 20 ms steps with and without.

python benchmarks/event_cost.py [steps]

A step is busy work, so that caches and the clock are as in training. The cost of a report is
also taken alone, because 0.5% of a step drowns in the noise of any machine.
"""

from __future__ import annotations

import sys
import tempfile
import time

from ab import conditions, in_turns, show, show_ratio
from paceline.events import Place, Reporter
from paceline.measure.statistics import estimate

STEP_S = 0.020
METRICS = {"loss_d": 0.6931, "loss_g": 1.2345, "d_x": 0.5, "d_gz": 0.4}


def work(seconds: float) -> None:
    """Be busy for so long."""
    end = time.perf_counter() + seconds
    total = 0.0
    while time.perf_counter() < end:
        total += sum(range(100))


def one_report(reporter: Reporter, index: int) -> float:
    """Return what one report costs."""
    begun = time.perf_counter()
    reporter.iteration(0, index, of=10_000, items=16, data_s=0.001, wait_s=0.002, metrics=METRICS)
    return time.perf_counter() - begun


def one_reading_of_the_parts() -> float:
    """Return what it costs to find out how long a step waited: the clock, read six times."""
    begun = time.perf_counter()
    for _ in range(3):  # input, waiting and the whole: a beginning and an end each
        marked = time.perf_counter()
        time.perf_counter() - marked
    return time.perf_counter() - begun


def loop(reporter: Reporter, steps: int) -> float:
    """Return the time of a loop of fixed work with reports."""
    begun = time.perf_counter()
    for index in range(steps):
        work(STEP_S)
        reporter.iteration(0, index, of=steps, items=16, metrics=METRICS)
    return time.perf_counter() - begun


def main() -> None:
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    conditions()
    with tempfile.TemporaryDirectory() as folder:
        heard = Reporter(folder, place=Place())
        silent = Reporter("", place=Place())
        cost = estimate(one_report(heard, index) for index in range(20_000))
        assert cost is not None
        show("one report of an iteration", cost, "us", 1e6)
        print(f"share of a 20 ms iteration: {cost.mean / STEP_S:.3%} (aim: at most 0.5%)")
        parts = estimate(one_reading_of_the_parts() for _ in range(20_000))
        assert parts is not None
        show("one reading of where the time goes", parts, "us", 1e6)
        both = (cost.mean + parts.mean) / STEP_S
        print(f"both, of a 20 ms iteration: {both:.3%} (aim: at most 1%)")
        ours, bare = in_turns(lambda: loop(heard, steps), lambda: loop(silent, steps), 5)
        show(f"{steps} steps of 20 ms, reported", ours, "ms", 1e3)
        show(f"{steps} steps of 20 ms, silent", bare, "ms", 1e3)
        show_ratio("ratio", ours, bare)
        heard.end()
        silent.end()


if __name__ == "__main__":
    main()
