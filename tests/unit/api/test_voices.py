"""Lines of several processes, each with who says it."""

from __future__ import annotations

import pytest

from paceline.api.voices import Voices
from paceline.model.command import Command
from paceline.model.host import Cluster, Host, HostFacts
from paceline.model.plan import Configuration, HostPlan, ProcessPlan, RunPlan
from paceline.model.spec import load_spec
from paceline.planning.run import plan_run


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
    """Where each rank is a process; on one host, the rank is enough; labels are equally wide."""
    two = Voices(plan_of(("rank-0",), ("rank-10",)))
    assert two.marked("rank-0", "a\nb\n") == "rank-0 node0  | a\nrank-0 node0  | b\n"
    assert two.marked("rank-10", "c\r\n") == "rank-10 node1 | c\r\n"
    assert Voices(plan_of(("rank-0", "rank-1"))).marked("rank-1", "a\n") == "rank-1 | a\n"


@pytest.mark.parametrize(
    ("launcher", "procs", "fronts"),
    [
        ("direct", 1, ["rank-0 a", "rank-1 b"]),
        ("torchrun", 1, ["torchrun-0 rank 0 a", "torchrun-1 rank 1 b"]),
        ("torchrun", 4, ["torchrun-0 ranks 0-3 a", "torchrun-1 ranks 4-7 b"]),
        ("mpirun", 1, ["mpirun ranks 0-1", "mpi-daemon-1 b"]),
        ("mpirun", 4, ["mpirun ranks 0-7", "mpi-daemon-1 b"]),
    ],
)
def test_who_speaks_for_several_ranks_names_them(
    launcher: str, procs: int, fronts: list[str]
) -> None:
    """And the host only where all of these ranks are: mpirun speaks for those of all hosts."""
    cluster = Cluster("c", "hosts", (Host("a", "a", "10.0.0.1"), Host("b", "b", "10.0.0.2")))
    plan = plan_run(
        load_spec({"job": {"launcher": launcher, "program": "dcgan"}}),
        Configuration(2, procs),
        cluster,
        {host.name: HostFacts(host.name, cores=4, free_port=20001) for host in cluster.hosts},
        "run",
        job_folder="/jobs/run",
        python="python3",
        import_path=None,
        port=29999,
        measured=False,
    )
    names = [process.name for host in plan.hosts for process in host.processes]
    voices = Voices(plan)
    said = [voices.marked(name, "x\n").partition(" | ")[0].rstrip() for name in names]
    assert sorted(said) == sorted(fronts)


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
