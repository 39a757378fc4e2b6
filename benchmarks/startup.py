"""How long `paceline --help` takes, beside a Python that does nothing.

python benchmarks/startup.py [rounds]
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from ab import conditions, in_turns, show, show_ratio

PACELINE = Path(sys.executable).with_name("paceline")


def timed(*argv: str) -> float:
    """Return the wall time of a command."""
    begun = time.perf_counter()
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begun


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    conditions()
    ours, bare = in_turns(
        lambda: timed(str(PACELINE), "--help"), lambda: timed(sys.executable, "-c", "pass"), rounds
    )
    show("paceline --help", ours, "ms", 1e3)
    show("python -c pass", bare, "ms", 1e3)
    show_ratio("ratio", ours, bare)
    print(f"difference: {(ours.mean - bare.mean) * 1e3:.0f} ms (aim: at most 100)")


if __name__ == "__main__":
    main()
