"""From the command to the first training step, over starting the same ranks by hand.

python benchmarks/first_step.py [rounds] [processes]

By hand means: the same trainer, started with environment variables by a small script that does
nothing else. In both cases the time ends with the first iteration that rank 0 reports.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from ab import conditions, in_turns, show

PACELINE = str(Path(sys.executable).with_name("paceline"))
FLAGS = {"batch_size": 16, "iterations": 1}


def free_port() -> int:
    """Return a port that is free now."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def first_iteration_t(folder: Path) -> float:
    """Return when rank 0 reported its first iteration, in Unix seconds."""
    for path in folder.rglob("rank-0.jsonl"):
        for line in path.read_text().splitlines():
            event = json.loads(line)
            if event["kind"] == "iteration":
                return float(event["t"])
    raise SystemExit(f"no iteration was reported below {folder}")


def by_hand(processes: int) -> float:
    """Start the ranks with environment variables, as a person would."""
    folder = Path(tempfile.mkdtemp())
    begun = time.time()
    port = str(free_port())
    argv = [sys.executable, "-m", "paceline.trainer", "--program", "dcgan", "--dataset", "fake"]
    argv += [word for name, value in FLAGS.items() for word in (f"--{name}", str(value))]
    threads = str(max(1, len(os.sched_getaffinity(0)) // processes))
    ranks = [
        subprocess.Popen(
            [*argv, "--out_folder", str(folder)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={
                **os.environ, "RANK": str(rank), "LOCAL_RANK": str(rank),
                "WORLD_SIZE": str(processes), "LOCAL_WORLD_SIZE": str(processes),
                "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "OMP_NUM_THREADS": threads,
                "PACELINE_EVENTS": str(folder),
            },
        )
        for rank in range(processes)
    ]  # fmt: skip
    assert all(rank.wait() == 0 for rank in ranks)
    took = first_iteration_t(folder) - begun
    shutil.rmtree(folder)
    return took


def by_paceline(processes: int) -> float:
    """Start the same ranks with `paceline train`."""
    folder = Path(tempfile.mkdtemp())
    sets = [f"--set=job.args.{name}={value}" for name, value in FLAGS.items()]
    begun = time.time()
    subprocess.run(
        [PACELINE, "train", "-p", str(processes), *sets, "--results", str(folder)],
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    took = first_iteration_t(folder) - begun
    shutil.rmtree(folder)
    return took


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    processes = int(sys.argv[2]) if len(sys.argv) > 2 else 2
    conditions()
    ours, hand = in_turns(lambda: by_paceline(processes), lambda: by_hand(processes), rounds)
    show(f"paceline train, {processes} processes: first step", ours, "s")
    show("the same ranks by hand: first step", hand, "s")
    print(f"difference: {ours.mean - hand.mean:.2f} s (aim: at most 0.5)")
    print(f"difference of the medians: {ours.median - hand.median:.2f} s")


if __name__ == "__main__":
    main()
