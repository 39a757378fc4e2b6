"""Is everything here that a run needs? Each check says what it found and what to do."""

from __future__ import annotations

import contextlib
import os
import platform
import secrets
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from paceline.app.alike import ClockOffset, python_differences
from paceline.app.delivery import HostData, digest_faults
from paceline.app.engines import LINGER, EngineFound, find_engine
from paceline.app.jobs import follow_job, start_job
from paceline.app.pairs import End, Fault
from paceline.app.workplace import Workplace
from paceline.errors import EnvironmentFault, MissingProgram, PacelineError
from paceline.model.command import Command
from paceline.model.host import HostFacts
from paceline.model.plan import Configuration, HostPlan, ProcessPlan, RunPlan
from paceline.supervisor.job import JobState

_GIB = 2**30
_LITTLE_DISK_BYTES = 2 * _GIB
_OLDEST_PYTHON = (3, 10)
_CLOCK_MAY_BE_OFF_S = 1.0


@dataclass(frozen=True)
class Check:
    """One thing that was looked at: `ok`, `warn` or `fail`."""

    name: str
    status: str
    detail: str
    hint: str | None = None


def check_python() -> Check:
    """Look at the interpreter that runs Paceline."""
    found = f"{platform.python_version()} at {sys.executable}"
    if sys.version_info < _OLDEST_PYTHON:
        return Check("python", "fail", found, "Paceline needs Python 3.10 or newer")
    return Check("python", "ok", found)


def check_host(name: str, facts: HostFacts, *, needs_torch: bool = True) -> Iterator[Check]:
    """Look at what a host said of itself."""
    yield Check(f"{name}: python", "ok", f"{facts.python_version} at {facts.python_path}")
    yield Check(f"{name}: cores", "ok", f"{facts.cores} ({facts.cpu_model or 'model unknown'})")
    yield _check_torch(name, facts, needed=needs_torch)
    yield _check_gpus(name, facts)
    yield _check_disk(name, facts.disk_free_bytes)


def _check_torch(name: str, facts: HostFacts, *, needed: bool) -> Check:
    where = facts.python_path
    if facts.torch_version is None:
        return Check(
            f"{name}: torch",
            "fail" if needed else "ok",
            f"not installed for {where}",
            "pip install torch, or name an interpreter that has it under runtime.python",
        )
    return Check(f"{name}: torch", "ok", f"{facts.torch_version} for {where}")


def _check_gpus(name: str, facts: HostFacts) -> Check:
    if not facts.gpus:
        return Check(f"{name}: gpus", "ok", "none; the ranks train on the CPU, over gloo")
    return Check(f"{name}: gpus", "ok", ", ".join(gpu.name for gpu in facts.gpus))


def _check_disk(name: str, free_bytes: int | None) -> Check:
    if free_bytes is None:
        return Check(f"{name}: disk", "warn", "free space unknown")
    found = f"{free_bytes / _GIB:.1f} GiB free"
    if free_bytes < _LITTLE_DISK_BYTES:
        return Check(f"{name}: disk", "warn", found, "data sets and checkpoints may not fit")
    return Check(f"{name}: disk", "ok", found)


def check_links(hosts: int, faults: tuple[Fault, ...]) -> Iterator[Check]:
    """Say how the hosts reach each other."""
    for fault in faults:
        yield Check(f"{fault.host}: peers", "fail", fault.text, fault.hint)
    if not faults:
        yield Check("pairs", "ok", f"{hosts} hosts reach each other, both ways")


def check_clocks(offsets: Mapping[str, ClockOffset | None]) -> Iterator[Check]:
    """Say which clocks are off; those of a cluster should agree within a second."""
    for name, offset in offsets.items():
        if offset is None:
            yield Check(f"{name}: clock", "warn", "it could not be asked for the time")
        elif offset.surely_s > _CLOCK_MAY_BE_OFF_S:
            ahead = "ahead of" if offset.seconds > 0 else "behind"
            yield Check(
                f"{name}: clock",
                "warn",
                f"{abs(offset.seconds):.1f} s {ahead} ours",
                "`timedatectl set-ntp true` there: logs of several hosts are ordered by their "
                "clocks, and the first rank to fail is found by them",
            )
        else:
            yield Check(f"{name}: clock", "ok", f"within {offset.within_s + offset.surely_s:.2f} s")


def check_alike(facts: Mapping[str, HostFacts]) -> Iterator[Check]:
    """Say where interpreters differ, which a job may survive."""
    for name, version in python_differences(facts).items():
        first = next(iter(facts))
        yield Check(
            f"{name}: python",
            "warn",
            f"{version}, and {facts[first].python_version} on {first}",
            "what one of them pickles, the other may not read",
        )


def check_data_on_hosts(name: str, found: Sequence[HostData]) -> Iterator[Check]:
    """Say where a data set lies, and whether all hosts have the same."""
    faults = digest_faults({item.host: item.digest for item in found})
    for item in found:
        yield Check(f"{item.host}: data", "ok", f"{name} at {item.root}, {item.digest[:12]}")
    for fault in faults:
        yield Check(f"{fault.host}: data", "fail", fault.text, fault.hint.replace("NAME", name))


async def check_engine(end: End, *, ours: bool = False) -> Check:
    """Look for the engine that a host's containers need; a host of ours is given one."""
    name = f"{end.host.name}: containers"
    try:
        found = await find_engine(end.link, end.facts, look_only=True)
    except MissingProgram as fault:
        if ours:
            hint = "`train`, `run` and `study` install docker there; `bake` keeps it in an image"
            return Check(name, "warn", fault.message, hint)
        return Check(name, "fail", fault.message, fault.hint)
    except EnvironmentFault as fault:
        return Check(name, "fail", fault.message, fault.hint)
    return check_engine_found(name, found)


def check_engine_found(name: str, found: EngineFound) -> Check:
    """Say how an engine is spoken to, and what may go wrong with it."""
    answers = f"`{' '.join(found.words)}` answers"
    if found.through_sudo:
        answers += ", for its user may not speak to it"
    if found.is_rootless and not found.lingers:
        return Check(name, "warn", answers, LINGER)
    return Check(name, "ok", answers)


def check_folder(name: str, folder: Path) -> Check:
    """Look whether a folder can be written, without creating it."""
    existing = next(path for path in (folder, *folder.parents) if os.path.lexists(path))
    if existing.is_dir() and os.access(existing, os.W_OK | os.X_OK):
        free = shutil.disk_usage(existing).free
        if free < _LITTLE_DISK_BYTES:
            return Check(name, "warn", f"{folder}: {free / _GIB:.1f} GiB free", "that is little")
        return Check(name, "ok", f"{folder}: {free / _GIB:.1f} GiB free")
    return Check(name, "fail", f"{folder} cannot be written", "make it writable, or choose another")


async def check_rehearsal_job(place: Workplace, name: str) -> Check:
    """Start a job that does nothing on a host, the whole way that a real one goes."""
    job_id = f"doctor-{secrets.token_hex(3)}"
    host = next(host for host in place.cluster.hosts if host.name == name)
    ground = place.grounds[name]
    process = ProcessPlan("true", Command(argv=(ground.python, "-c", "")), ranks=())
    plan = RunPlan(
        run_id=job_id,
        configuration=Configuration(nodes=1, procs_per_node=1),
        launcher="direct",
        hosts=(HostPlan(host, 0, (process,)),),
        master_address=host.peer_address,
        master_port=0,
        job_folder=f"{ground.job_root}/{job_id}",
        python=ground.python,
        import_path=ground.import_path,
    )
    link = place.pad.links[name]
    try:
        await start_job(link, plan, plan.hosts[0])
        async with contextlib.aclosing(follow_job(link, plan)) as messages:
            states = [item async for item in messages if isinstance(item, JobState)]
    except PacelineError as error:
        return Check(f"{name}: a job", "fail", str(error), error.hint)
    finally:
        await link.run(Command(argv=("rm", "-rf", "--", plan.job_folder)))
    if states and states[-1].outcome == "succeeded":
        return Check(f"{name}: a job", "ok", "was started, followed and ended")
    ended = states[-1] if states else None
    detail = f"ended as {ended.outcome}: {ended.detail or ended.first_failure}" if ended else "lost"
    return Check(f"{name}: a job", "fail", detail)
