"""The trainer against the textbook DCGAN, in the same run, in turns: ratios with their spread.

python benchmarks/trainer.py            everything, ten minutes on a quiet machine of two cores
python benchmarks/trainer.py --quick    everything with fewer turns, five minutes
python benchmarks/trainer.py one        one process: batch 16 and 128, bf16 and exact fp32
python benchmarks/trainer.py hosts      two hosts (namespaces): unlimited, 1 Gbit/s, 200 Mbit/s
python benchmarks/trainer.py epoch      a whole epoch with input, pictures, checkpoint / bare steps
python benchmarks/trainer.py CASE...    single cases, such as one-bf16-16 or hosts-200mbit

`hosts` needs root and iproute2. Bytes are read from the hosts' interfaces. The last lines are a
table in Markdown; `--write docs/performance.md` puts its lines into that file, in place of those
of the same cases. What the textbook does, and that it is given its best: see textbook_dcgan.py;
alone, it works on one batch again and again, so that its input costs it nothing.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial
from pathlib import Path

from ab import conditions, show
from paceline.rehearsal.network import LabHost, network, plan_network
from turns import Duel, Training, bare_step_s, duel, iteration_s, started

HERE = Path(__file__).resolve().parent
DATA = ("--dataset", "fake")
ENDLESS = str(10**6)
TEXTBOOK = (sys.executable, str(HERE / "textbook_dcgan.py"), *DATA, "--iterations", ENDLESS)
OURS = (sys.executable, "-m", "paceline.trainer", *DATA, "--num_epochs", ENDLESS)
STEPS_ONLY = ("--pictures_every", "0", "--checkpoint_every", "0")
# The images of an epoch, and so how often its end comes, are few here: real epochs have more
# steps for each checkpoint.
EPOCH_STEPS = 200


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    case: str
    aim: str
    found: Duel
    cpu_ratio: float
    sent: str = ""

    def markdown(self, when: str) -> str:
        """Return the line of a Markdown table."""
        ratio, first, second = self.found.ratio, self.found.first, self.found.second
        spread = "" if ratio.low is None else f"{ratio.low:.2f} to {ratio.high:.2f}"
        times = f"{first.mean * 1e3:.0f} / {second.mean * 1e3:.0f}"
        return (
            f"| {self.case} | {self.aim} | **{ratio.mean:.2f}x** | {spread} | {ratio.n} "
            f"| {self.cpu_ratio:.2f}x | {times} | {self.sent} | {when} |"
        )


def report(row: Row, names: tuple[str, str]) -> Row:
    """Print what was found as it is found."""
    print(f"\n{row.case} (aim {row.aim})")
    show(f"  {names[0]}", row.found.first, "ms per iteration", 1e3)
    show(f"  {names[1]}", row.found.second, "ms per iteration", 1e3)
    show(f"  {names[0]} / {names[1]}", row.found.ratio, "x")
    print(f"  the same of processor time: {row.cpu_ratio:.2f} x")
    if row.sent:
        print(f"  sent per iteration and host, textbook / ours: {row.sent} MB (aim 12.8)")
    sys.stdout.flush()
    return row


def against_textbook(
    case: str,
    aim: str,
    *,
    ours: tuple[str, ...],
    batch: int,
    turns: int,
    iterations: int,
    hosts: Sequence[LabHost] = (),
) -> Row:
    """Let both train on the same hosts, or here, and compare."""
    with tempfile.TemporaryDirectory() as name:
        size = ("--batch_size", str(batch))
        places = tuple(hosts) or (None,)
        alone = () if hosts else ("--bare",)
        textbook = Training("textbook", (*TEXTBOOK, *size, *alone), Path(name, "textbook"), places)
        argv = (*OURS, *size, *STEPS_ONLY, *ours)
        mine = Training("ours", argv, Path(name, "ours"), places)
        with started((textbook, mine)):
            found = duel(
                (textbook, iteration_s), (mine, iteration_s), turns=turns, iterations=iterations
            )
        megabytes = [one.sent_bytes / one.iterations / 1e6 for one in (textbook, mine)]
    sent = " / ".join(f"{figure:.1f}" for figure in megabytes) if hosts else ""
    cpu_ratio = textbook.cpu_of_iteration_s / mine.cpu_of_iteration_s
    return report(Row(case, aim, found, cpu_ratio, sent), ("textbook", "ours"))


def one_process(precision: str, batch: int, aim: str, turns: int) -> Row:
    """Compare single processes."""
    return against_textbook(
        f"one process, batch {batch}, {precision}",
        aim,
        ours=("--precision", precision),
        batch=batch,
        turns=turns,
        iterations=8 if batch < 64 else 2,
    )


def two_hosts(rate: str | None, aim: str, turns: int) -> Row:
    """Compare two hosts over a link of some speed."""
    plan = plan_network(f"b{os.getpid() % 99999}", 2, rate=rate, subnet=76)
    with tempfile.TemporaryDirectory() as folder, network(plan, Path(folder) / "lab.json"):
        return against_textbook(
            f"two hosts, batch 16, link {rate or 'unlimited'}",
            aim,
            ours=("--precision", "bf16", "--wire", "bf16"),
            batch=16,
            turns=turns,
            iterations=4 if rate == "200mbit" else 8,
            hosts=plan.hosts,
        )


def whole_epoch(turns: int) -> Row:
    """Compare an epoch, with all that belongs to it, with bare steps.

    A turn is as many iterations as an epoch has: wherever it begins, it holds as much of all
    that happens once or twice in an epoch as an epoch does.
    """
    with tempfile.TemporaryDirectory() as name:
        argv = (*OURS, "--batch_size", "16", "--precision", "bf16")
        count = ("--count", str(16 * EPOCH_STEPS))
        whole = Training("whole epoch", (*argv, *count), Path(name, "whole"))
        bare = Training("bare steps", (*argv, *STEPS_ONLY), Path(name, "bare"))
        with started((whole, bare)):
            found = duel(
                (whole, iteration_s), (bare, bare_step_s), turns=turns, iterations=EPOCH_STEPS
            )
    cpu_ratio = whole.cpu_of_iteration_s / bare.cpu_of_iteration_s
    row = Row("whole epoch over bare steps", "1.03x at most", found, cpu_ratio)
    return report(row, ("whole epoch", "bare steps"))


CASES: dict[str, tuple[Callable[..., Row], int]] = {
    "one-bf16-16": (partial(one_process, "bf16", 16, "1.8x"), 12),
    "one-bf16-128": (partial(one_process, "bf16", 128, "2.3x"), 6),
    "one-fp32-16": (partial(one_process, "fp32", 16, "1.15x"), 10),
    "one-fp32-128": (partial(one_process, "fp32", 128, "1.35x"), 6),
    "hosts-unlimited": (partial(two_hosts, None, "1.9x"), 10),
    "hosts-1gbit": (partial(two_hosts, "1gbit", "2.6x"), 8),
    "hosts-200mbit": (partial(two_hosts, "200mbit", "3.4x"), 6),
    "epoch": (whole_epoch, 4),
}
QUICK_TURNS = 3
HEADER = """
| case | aim | ratio | 95% interval | turns | processor time | ms, both | MB sent, both | measured |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |"""


def chosen(words: Sequence[str]) -> list[str]:
    """Return the cases that are named, or whose names begin so; all where none is."""
    found = [
        case
        for case in CASES
        if not words or any(case == word or case.startswith(f"{word}-") for word in words)
    ]
    return found or sys.exit(f"cases are: {' '.join(CASES)}")


def written(text: str, rows: Sequence[Row], when: str) -> str:
    """Return a document with each row in place of the table's line of the same case."""
    lines = text.splitlines()
    for row in rows:
        start = f"| {row.case} |"
        found = [number for number, line in enumerate(lines) if line.startswith(start)]
        if not found:
            sys.exit(f"the document has no line that begins with {start!r}")
        lines[found[0]] = row.markdown(when)
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description="The trainer against the textbook DCGAN.")
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(CASES))
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_TURNS} turns of each")
    parser.add_argument("--write", type=Path, metavar="FILE", help="a document with the table")
    options = parser.parse_args()
    # Who ends us, by a time limit for example, must not leave trainings and networks behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    when = f"{date.today()}, load {os.getloadavg()[0]:.0f}"  # noqa: DTZ011 - the reader's own day
    conditions()
    rows = []
    for case in chosen(options.cases):
        compare, turns = CASES[case]
        rows.append(compare(turns=QUICK_TURNS if options.quick else turns))
        if options.write:
            options.write.write_text(written(options.write.read_text(), rows[-1:], when))
    print(HEADER)
    print("\n".join(row.markdown(when) for row in rows))


if __name__ == "__main__":
    main()
