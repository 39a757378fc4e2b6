"""The trainer against the textbook DCGAN, in the same run, in turns: ratios with their spread.

python benchmarks/trainer.py            everything, twenty minutes
python benchmarks/trainer.py one        one process: batch 16 and 128, bf16 and exact fp32
python benchmarks/trainer.py hosts      two hosts (namespaces): unlimited, 1 Gbit/s, 200 Mbit/s
python benchmarks/trainer.py epoch      a whole epoch with input, pictures, checkpoint / bare steps
python benchmarks/trainer.py CASE...    single cases, such as one-bf16-16 or hosts-200mbit

`hosts` needs root and iproute2. Bytes are read from the hosts' interfaces.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import fmean

from ab import conditions, in_turns, show, show_ratio
from paceline.rehearsal.network import LabHost, network, plan_network

HERE = Path(__file__).resolve().parent
SOURCES = HERE.parent / "src"
TEXTBOOK = (sys.executable, str(HERE / "textbook_dcgan.py"))
OURS = (sys.executable, "-m", "paceline.trainer", "--program", "dcgan", "--pictures_every", "0")
WARMUP = 3
DATA = ("--dataset", "fake")


@dataclass(frozen=True)
class Way:
    """One way to train: a command line and its flags."""

    argv: tuple[str, ...]

    def measure(self, hosts: Sequence[LabHost | None], batch: int, iterations: int) -> Measured:
        """Train on the hosts (None: here), one process each."""
        with tempfile.TemporaryDirectory() as folder:
            before = [host.sent_bytes() if host else 0 for host in hosts]
            flags = (*DATA, "--batch_size", str(batch), "--iterations", str(iterations))
            ranks = [
                subprocess.Popen(
                    _on(host, (*self.argv, *flags)),
                    env=_environment(rank, hosts, folder),
                    cwd=folder,
                    stdout=subprocess.DEVNULL,
                )
                for rank, host in enumerate(hosts)
            ]
            assert all(rank.wait() == 0 for rank in ranks)
            sent = [
                host.sent_bytes() - known if host else 0
                for host, known in zip(hosts, before, strict=True)
            ]
            times = [
                _iteration_s(Path(folder) / f"rank-{rank}.jsonl") for rank in range(len(hosts))
            ]
        return Measured(max(times), fmean(sent) / iterations)


@dataclass(frozen=True)
class Measured:
    """The mean iteration of the slowest rank, and what a host sent for each."""

    iteration_s: float
    sent_bytes: float


def _on(host: LabHost | None, argv: tuple[str, ...]) -> tuple[str, ...]:
    return argv if host is None else host.inside(argv)


def _environment(rank: int, hosts: Sequence[LabHost | None], folder: str) -> dict[str, str]:
    first = hosts[0]
    return {
        **os.environ,
        "PYTHONPATH": str(SOURCES),
        "PACELINE_EVENTS": folder,
        "PACELINE_OUT": folder,
        "OMP_NUM_THREADS": "1",
        "RANK": str(rank),
        "LOCAL_RANK": "0",
        "WORLD_SIZE": str(len(hosts)),
        "LOCAL_WORLD_SIZE": "1",
        "MASTER_ADDR": first.address if first else "127.0.0.1",
        "MASTER_PORT": "29411",
        "GLOO_SOCKET_IFNAME": "eth0" if first else "lo",
    }


def _iteration_s(path: Path) -> float:
    events = [json.loads(line) for line in path.read_text().splitlines()]
    times = [event["seconds"] for event in events if event["kind"] == "iteration"]
    return fmean(times[WARMUP:])


def compare(
    name: str,
    ours: tuple[str, ...],
    aim: str,
    *,
    hosts: Sequence[LabHost | None] = (None,),
    batch: int = 16,
    iterations: int = 20,
    rounds: int = 3,
) -> None:
    """Print both ways and the textbook's time over ours."""
    sent: dict[str, float] = {}

    def timed(way: Way, label: str) -> Callable[[], float]:
        def once() -> float:
            found = way.measure(hosts, batch, iterations + WARMUP)
            sent[label] = found.sent_bytes
            return found.iteration_s

        return once

    mine, theirs = in_turns(
        timed(Way((*OURS, *ours)), "ours"),
        timed(Way((*TEXTBOOK, "--bare") if hosts[0] is None else TEXTBOOK), "textbook"),
        rounds,
    )
    print(f"\n{name} (aim {aim})")
    show("  textbook", theirs, "ms per iteration", 1e3)
    show("  ours", mine, "ms per iteration", 1e3)
    print(f"  img/s: textbook {batch / theirs.mean:.1f}, ours {batch / mine.mean:.1f}")
    show_ratio("  textbook / ours", theirs, mine)
    if hosts[0] is not None:
        print(
            f"  sent per iteration and host: textbook {sent['textbook'] / 1e6:.1f} MB, "
            f"ours {sent['ours'] / 1e6:.1f} MB (aim 12.8 MB)"
        )


def one_process(precision: str, batch: int, aim: str) -> None:
    """Compare single processes: steps on one batch in the textbook's favour."""
    compare(
        f"one process, batch {batch}, {precision}",
        ("--precision", precision, "--wire", "fp32"),
        aim,
        batch=batch,
        iterations=30 if batch == 16 else 8,
    )


def two_hosts(rate: str | None, aim: str) -> None:
    """Compare two hosts over a link of some speed."""
    plan = plan_network(f"b{os.getpid() % 99999}", 2, rate=rate, subnet=76)
    with tempfile.TemporaryDirectory() as folder, network(plan, Path(folder) / "lab.json"):
        compare(
            f"two hosts, batch 16, link {rate or 'unlimited'}",
            ("--precision", "bf16", "--wire", "bf16"),
            aim,
            hosts=plan.hosts,
        )


def whole_epoch() -> None:
    """Compare the wall time of an epoch, with all that belongs to it, with its bare steps."""
    images = 4000

    def epoch(*, bare: bool) -> float:
        with tempfile.TemporaryDirectory() as folder:
            flags = (*DATA, "--count", str(images), "--batch_size", "16", "--num_epochs", "1")
            more = ("--checkpoint_every", "0") if bare else ("--pictures_every", "100")
            subprocess.run(
                (*OURS, *flags, *more),
                env=_environment(0, (None,), folder),
                cwd=folder,
                stdout=subprocess.DEVNULL,
                check=True,
            )
            lines = (Path(folder) / "rank-0.jsonl").read_text().splitlines()
            events = [json.loads(line) for line in lines]
            if bare:
                steps = [event for event in events if event["kind"] == "iteration"]
                return float(sum(step["seconds"] - (step.get("data_s") or 0.0) for step in steps))
            return float(next(event["seconds"] for event in events if event["kind"] == "epoch"))

    whole, bare = in_turns(lambda: epoch(bare=False), lambda: epoch(bare=True), 3)
    print("\na whole epoch over its bare steps (aim: at most 1.03x)")
    show("  epoch with input, pictures and checkpoint", whole, "s")
    show("  bare steps", bare, "s")
    show_ratio("  ratio", whole, bare)


CASES: dict[str, Callable[[], None]] = {
    "one-bf16-16": partial(one_process, "bf16", 16, "1.8x"),
    "one-bf16-128": partial(one_process, "bf16", 128, "2.3x"),
    "one-fp32-16": partial(one_process, "fp32", 16, "1.15x"),
    "one-fp32-128": partial(one_process, "fp32", 128, "1.35x"),
    "hosts-unlimited": partial(two_hosts, None, "1.9x"),
    "hosts-1gbit": partial(two_hosts, "1gbit", "2.6x"),
    "hosts-200mbit": partial(two_hosts, "200mbit", "3.4x"),
    "epoch": whole_epoch,
}


def chosen(words: Sequence[str]) -> list[str]:
    """Return the cases that are named, or whose names begin so; all where none is."""
    found = [
        case
        for case in CASES
        if not words or any(case == word or case.startswith(f"{word}-") for word in words)
    ]
    return found or sys.exit(f"cases are: {' '.join(CASES)}")


def main() -> None:
    conditions()
    for case in chosen(sys.argv[1:]):
        CASES[case]()


if __name__ == "__main__":
    main()
