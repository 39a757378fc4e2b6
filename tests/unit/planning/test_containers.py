"""The processes of a host behind an engine: words, environment, names, endings."""

from __future__ import annotations

from dataclasses import replace

from paceline.model.command import Command, Secret
from paceline.model.host import Host
from paceline.model.plan import Container, HostPlan, JobPlace, ProcessPlan
from paceline.planning.containers import contained, glance

HOST = Host("alpha", "203.0.113.1", "10.0.0.1")
CONTAINER = Container(("docker",), "train:1", ("/pkg:ro", "/work"), ("--gpus", "all"))
PLACE = JobPlace("/jobs/r1", "/usr/bin/python3", "/pkg", container=CONTAINER)
RANK = ProcessPlan(
    "rank-0",
    Command(("python3", "train.py"), {"RANK": "0", "HF_TOKEN": Secret("sesame")}, "/work"),
    (0,),
)


def test_a_rank_in_a_container() -> None:
    """The whole line: values stay off it, and the job's own folder is mounted."""
    plan = contained("r1", HostPlan(HOST, 0, (RANK,), PLACE))
    (process,) = plan.processes
    assert process.command.argv == (
        "docker", "run", "--rm", "--init", "--pull=never", "--name", "paceline-r1-rank-0",
        "--network=host", "--ipc=host", "--log-driver=none", "--workdir", "/work",
        "--volume", "/pkg:/pkg:ro", "--volume", "/work:/work", "--volume", "/jobs/r1:/jobs/r1",
        "--gpus", "all",
        "--env", "HF_TOKEN", "--env", "PACELINE_EVENTS", "--env", "PACELINE_JOB",
        "--env", "PACELINE_OUT", "--env", "PYTHONFAULTHANDLER", "--env", "RANK",
        "train:1", "python3", "train.py",
    )  # fmt: skip
    assert process.command.env == RANK.command.env
    assert process.ranks == (0,)
    assert "sesame" not in " ".join(process.command.argv)
    assert plan.endings == (("docker", "rm", "--force", "--volumes", "paceline-r1-rank-0"),)


def test_sudo_lets_the_variables_through() -> None:
    """Sudo is told which variables to keep, by their names."""
    container = replace(CONTAINER, engine=("sudo", "-n", "docker"))
    place = replace(PLACE, container=container)
    plan = contained("r1", HostPlan(HOST, 0, (RANK,), place))
    assert plan.processes[0].command.argv[:4] == (
        "sudo",
        "--preserve-env=HF_TOKEN,PACELINE_EVENTS,PACELINE_JOB,PACELINE_OUT,PYTHONFAULTHANDLER,RANK",
        "-n",
        "docker",
    )
    assert plan.endings[0][:3] == ("sudo", "-n", "docker")


def test_without_a_container_nothing_changes() -> None:
    """A host that has none, and one that does nothing, stay as they are."""
    bare = HostPlan(HOST, 0, (RANK,), replace(PLACE, container=None))
    idle = HostPlan(HOST, 1, (), PLACE)
    assert contained("r1", bare) == bare
    assert contained("r1", idle) == idle


def test_names_are_such_that_engines_take_them() -> None:
    """What a container's name cannot hold is written as a dash."""
    plan = contained("batch%2F16 x", HostPlan(HOST, 0, (RANK,), PLACE))
    assert plan.endings[0][-1] == "paceline-batch-2F16-x-rank-0"


def test_a_glance_has_the_same_surroundings() -> None:
    """What is asked before a run is asked in the image, with what of the run can be read only."""
    command = glance(CONTAINER, ("python3", "-V"))
    assert command.argv == (
        "docker", "run", "--rm", "--init", "--pull=never", "--network=host", "--ipc=host",
        "--volume", "/pkg:/pkg:ro", "--gpus", "all", "train:1", "python3", "-V",
    )  # fmt: skip
