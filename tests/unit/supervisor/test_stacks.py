"""Stacks: read from what a dying Python writes, and told apart by who waits for whom."""

from __future__ import annotations

from paceline.supervisor.hanging import hang_failure
from paceline.supervisor.stacks import Stack, stack_in

DUMP = """\
epoch 0
Fatal Python error: Aborted

Thread 0x00007f5 (most recent call first):
  File "/usr/lib/python3.11/threading.py", line 324 in wait
Current thread 0x00007f1 (most recent call first):
  File "train.py", line 7 in fetch
  File "train.py", line 9 in <module>

Extension modules: numpy.core (total: 1)
"""
WAITS = Stack(
    0,
    "rank-0",
    'Thread 0x1 (most recent call first):\n  File "/x/torch/distributed/c10d.py", line 1 in wait',
)
HANGS = Stack(1, "rank-1", stack_in(DUMP))
MUTE = Stack(2, "rank-2", "")


def test_the_stacks_are_cut_out() -> None:
    """Headers and frames of all threads stay; the log before and the modules after do not."""
    lines = stack_in(DUMP).splitlines()
    assert len(lines) == 5
    assert lines[0].startswith("Thread")
    assert lines[-1].endswith("in <module>")


def test_the_last_of_several_dumps_counts() -> None:
    """Ranks may share a log: the one that was asked last has written last."""
    assert stack_in(DUMP.replace("fetch", "first") + DUMP).count("in fetch") == 1


def test_a_log_without_a_dump_has_no_stack() -> None:
    """What a rank printed is no stack."""
    assert stack_in('  File "x.py", line 1\n') == ""


def test_the_rank_that_others_wait_for_is_named_first() -> None:
    """Who waits in a collective is not the one to look at."""
    failure = hang_failure([WAITS, HANGS], ["rank-0", "rank-1"], 1800.0)
    assert (failure.process, failure.waits) == ("rank-1", False)
    assert failure.reason == "rank 1 hangs: no output, no event for 30 min"
    assert failure.excerpt.index("rank 1 of rank-1") < failure.excerpt.index("rank 0 of rank-0")


def test_a_host_whose_ranks_all_wait_says_so() -> None:
    """Then the rank to look at is on another host."""
    failure = hang_failure([WAITS], ["rank-0"], 5.0)
    assert failure.waits
    assert failure.reason == "rank 0 waits for other ranks: no output, no event for 5 s"


def test_a_rank_that_says_nothing_is_named_all_the_same() -> None:
    """Without a stack, the reason remains."""
    failure = hang_failure([MUTE], ["rank-2"], 5.0)
    assert failure.process == "rank-2"
    assert "it did not say where it was" in failure.excerpt
