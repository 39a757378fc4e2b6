"""Lines of several processes, each with who says it."""

from __future__ import annotations

from paceline.api.voices import Voices
from paceline.model.command import Command
from paceline.model.host import Host
from paceline.model.plan import Configuration, HostPlan, ProcessPlan, RunPlan


def plan_of(*names_per_host: tuple[str, ...]) -> RunPlan:
    """Return the plan of a run with these processes on each host."""
    hosts = tuple(
        HostPlan(
            Host(f"node{index}", "192.0.2.1", "10.0.0.1"),
            index,
            tuple(ProcessPlan(name, Command(("true",)), ()) for name in names),
        )
        for index, names in enumerate(names_per_host)
    )
    return RunPlan(
        "run", Configuration(len(hosts), 1), "direct", hosts, "10.0.0.1", 1, "/jobs", "python3"
    )


def test_what_one_process_says_is_not_marked() -> None:
    """There is nobody to confuse it with."""
    assert Voices(plan_of(("rank-0",))).marked("rank-0", "a\nb\n") == "a\nb\n"


def test_each_line_bears_rank_and_host() -> None:
    """On one host, the rank is enough; labels are as wide as the widest."""
    two = Voices(plan_of(("rank-0",), ("rank-10",)))
    assert two.marked("rank-0", "a\nb\n") == "rank-0 node0  | a\nrank-0 node0  | b\n"
    assert two.marked("rank-10", "c\r\n") == "rank-10 node1 | c\r\n"
    assert Voices(plan_of(("rank-0", "rank-1"))).marked("rank-1", "a\n") == "rank-1 | a\n"


def test_a_bar_that_is_written_over_keeps_its_mark() -> None:
    """A carriage return begins a line anew."""
    voices = Voices(plan_of(("rank-0", "rank-1")))
    assert voices.marked("rank-0", "1%\r2%\r") == "rank-0 | 1%\rrank-0 | 2%\r"


def test_pieces_of_a_line_are_joined_and_never_mixed() -> None:
    """A long line goes on where it was; another speaker begins a line of its own."""
    voices = Voices(plan_of(("rank-0", "rank-1")))
    assert voices.marked("rank-0", "half") == "rank-0 | half"
    assert voices.marked("rank-0", " whole\nmore") == " whole\nrank-0 | more"
    assert voices.marked("rank-1", "other\n") == "\nrank-1 | other\n"
    assert voices.marked("rank-0", "") == ""
