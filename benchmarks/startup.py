"""How long `paceline --help` takes, beside a Python that does nothing.

python benchmarks/startup.py [rounds]

The processor time is shown as well: other work on the machine does not change it much.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from ab import conditions, in_turns, show, show_ratio

PACELINE = Path(sys.executable).with_name("paceline")


def children_s() -> float:
    """Return the processor time that ended children have taken."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def timed(clock: Callable[[], float], *argv: str) -> float:
    """Return what a command takes by a clock."""
    begun = clock()
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
    return clock() - begun


def compare(what: str, clock: Callable[[], float], rounds: int) -> None:
    """Measure both in turns by a clock, and print what came out."""
    ours, bare = in_turns(
        lambda: timed(clock, str(PACELINE), "--help"),
        lambda: timed(clock, sys.executable, "-c", "pass"),
        rounds,
    )
    show(f"paceline --help, {what}", ours, "ms", 1e3)
    show(f"python -c pass, {what}", bare, "ms", 1e3)
    show_ratio("ratio", ours, bare)
    print(f"difference: {(ours.mean - bare.mean) * 1e3:.0f} ms (aim: at most 100)")


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    conditions()
    compare("wall time", time.perf_counter, rounds)
    compare("processor time", children_s, rounds)


if __name__ == "__main__":
    main()
