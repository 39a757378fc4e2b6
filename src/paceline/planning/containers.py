"""The processes of a host as containers: the same commands, behind an engine's `run`."""

from __future__ import annotations

import re
from dataclasses import replace

from paceline.model.command import Command
from paceline.model.plan import Container, HostPlan, JobPlace, ProcessPlan
from paceline.supervisor.files import EVENTS_VARIABLE
from paceline.supervisor.job import JOB_VARIABLE, OUT_VARIABLE, STACKS_VARIABLE

# The supervisor adds them to every process; by them it also knows whose a container's processes
# are.
_SUPERVISORS_OWN = (EVENTS_VARIABLE, JOB_VARIABLE, OUT_VARIABLE, STACKS_VARIABLE)


def contained(run_id: str, plan: HostPlan) -> HostPlan:
    """Return what a host does with its processes in containers, where its place has one."""
    place = plan.place
    if place is None or place.container is None or not plan.processes:
        return plan
    names = [container_name(run_id, process.name) for process in plan.processes]
    processes = tuple(
        _contained(process, name, place, place.container)
        for process, name in zip(plan.processes, names, strict=True)
    )
    ending = (*place.container.engine, "rm", "--force", "--volumes", *names)
    return replace(plan, processes=processes, endings=(*plan.endings, ending))


def container_name(run_id: str, process: str) -> str:
    """Return the name of a process's container, which is ours alone and known beforehand."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", f"paceline-{run_id}-{process}")


def _contained(
    process: ProcessPlan, name: str, place: JobPlace, container: Container
) -> ProcessPlan:
    command = process.command
    names = sorted({*command.env, *_SUPERVISORS_OWN})
    mounts = dict.fromkeys((*container.mounts, place.job_folder))
    words = ["--rm", "--init", "--pull=never", "--name", name, *NEAR_THE_HOST]
    # What a terminal or a log shows comes to us; the engine need not keep it a second time.
    words.append("--log-driver=none")
    if command.cwd is not None:
        words += ["--workdir", command.cwd]
    words += mount_words(tuple(mounts))
    words += container.options
    # Named only: the values are in the environment, and in nobody's list of processes.
    words += [word for variable in names for word in ("--env", variable)]
    argv = (*keeping(container.engine, names), "run", *words, container.image, *command.argv)
    return replace(process, command=Command(argv, command.env, command.cwd, command.stdin))


def glance(container: Container, argv: tuple[str, ...]) -> Command:
    """Return the command that runs something short in a container that can change nothing."""
    mounts = tuple(mount for mount in container.mounts if mount.endswith(":ro"))
    words = ["--rm", "--init", "--pull=never", *NEAR_THE_HOST, *mount_words(mounts)]
    return Command((*container.engine, "run", *words, *container.options, container.image, *argv))


# The host's own interfaces for the ranks to meet, and its shared memory for their data loaders.
NEAR_THE_HOST = ("--network=host", "--ipc=host")


def mount_words(mounts: tuple[str, ...]) -> list[str]:
    """Return the words that lay paths of the host to the same places inside."""
    return [word for mount in mounts for word in ("--volume", _mount(mount))]


def _mount(path: str) -> str:
    bare = path.removesuffix(":ro")
    return f"{bare}:{path}"


def keeping(engine: tuple[str, ...], names: list[str]) -> tuple[str, ...]:
    """Return an engine's words so that these variables reach it, through sudo as well."""
    if engine[:1] != ("sudo",) or not names:
        return engine
    return ("sudo", f"--preserve-env={','.join(names)}", *engine[1:])
