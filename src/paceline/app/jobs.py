"""How we speak to the supervisor on one host: every word of it is a command over a transport."""

from __future__ import annotations

import json
import posixpath
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from paceline.errors import Conflict, EnvironmentFault, NotFound, TransportError
from paceline.model.command import Command, Completed
from paceline.model.plan import HostPlan, JobPlace, RunPlan
from paceline.ports import Transport
from paceline.supervisor.job import JOB_FILE, Companions, Job, JobProcess, JobState

_CONFLICT_EXIT = 7
_UNKNOWN_EXIT = 8
_STOPS_WITHIN_S = 120.0
ACTIVE = "active"


@dataclass(frozen=True)
class FileChunk:
    """Whole lines that were added to a file of a job."""

    file: str
    end: int
    text: str


def supervisor_command(place: JobPlace, verb: str, *words: str) -> Command:
    """Return the command that says `verb` to the supervisor of the job at a place."""
    env = {"PYTHONPATH": place.import_path} if place.import_path else {}
    argv = (place.python, "-m", "paceline.supervisor", verb, place.job_folder, *words)
    return Command(argv=argv, env=env)


def job_of(plan: RunPlan, host: HostPlan, *, grace_s: float = 10.0) -> Job:
    """Return what the supervisor of one host is to start."""
    processes = tuple(
        JobProcess(
            name=process.name,
            argv=process.command.argv,
            env=process.command.plain_env(),
            cwd=process.command.cwd,
            ranks=process.ranks,
        )
        for process in host.processes
    )
    return Job(
        job_id=plan.run_id,
        processes=processes,
        timeout_s=plan.timeout_s,
        grace_s=grace_s,
        endings=host.endings,
        hang_timeout_s=plan.hang_timeout_s,
        lookout=plan.lookout,
        mark=_mark(plan, host),
        companions=_companions(plan, host),
    )


def _companions(plan: RunPlan, host: HostPlan) -> Companions | None:
    """Return with whom the supervisor of a host keeps in touch, and how."""
    if plan.vigil is None:
        return None
    return Companions(
        host=host.host.name,
        hosts=tuple(item.host.name for item in plan.hosts if item.processes),
        address=plan.master_address,
        port=plan.vigil.port,
        secret=plan.vigil.secret.value,
    )


def _mark(plan: RunPlan, host: HostPlan) -> str | None:
    """Return the file by which a rented host knows that it is at work."""
    if host.host.ssh is None:
        return None
    base = posixpath.dirname(posixpath.dirname(plan.place_on(host.host).job_folder))
    return posixpath.join(base, ACTIVE)


async def start_job(transport: Transport, plan: RunPlan, host: HostPlan) -> JobState:
    """Hand a host its job and start it; the job goes on without us."""
    text = job_of(plan, host).to_json()
    place = plan.place_on(transport.host)
    # The job's environment may hold secrets: nobody else on the host may read it.
    await transport.put_bytes(text.encode(), f"{place.job_folder}/{JOB_FILE}", mode=0o600)
    done = await transport.run(supervisor_command(place, "start"))
    return _state_of(done, transport)


async def job_status(transport: Transport, plan: RunPlan) -> JobState | None:
    """Return where the job stands on a host; None if the host has never heard of it."""
    done = await transport.run(supervisor_command(plan.place_on(transport.host), "status"))
    try:
        return _state_of(done, transport)
    except (NotFound, EnvironmentFault):
        return None


async def stop_job(
    transport: Transport, plan: RunPlan, *, grace_s: float | None = None
) -> JobState | None:
    """End the job on a host, gently and then not, and return where it stands then.

    None if the host has never heard of it. `grace_s` is how long ranks that handle SIGTERM may
    take; None means the job's own.
    """
    words = () if grace_s is None else ("--grace", f"{grace_s:g}")
    command = supervisor_command(plan.place_on(transport.host), "stop", *words)
    patience_s = _STOPS_WITHIN_S + (grace_s or 0.0)
    done = await transport.run(command, timeout_s=patience_s)
    try:
        return _state_of(done, transport)
    except NotFound:
        return None


async def follow_job(
    transport: Transport, plan: RunPlan, since: Mapping[str, int] | None = None
) -> AsyncGenerator[FileChunk | JobState, None]:
    """Yield what the job writes and how it stands, until it has ended."""
    words = ("--since", json.dumps(dict(since))) if since else ()
    command = supervisor_command(plan.place_on(transport.host), "follow", *words)
    async with aclosing(transport.stream(command)) as lines:
        async for line in lines:
            message: dict[str, Any] = json.loads(line)
            if "state" in message:
                yield JobState.from_dict(message["state"])
            elif "file" in message:
                yield FileChunk(message["file"], message["end"], message["text"])
            elif "error" in message:
                raise EnvironmentFault(
                    str(message["error"]), host=transport.host.name, hint=message.get("hint")
                )


def _state_of(done: Completed, transport: Transport) -> JobState:
    host = transport.host.name
    try:
        message: dict[str, Any] = json.loads(done.stdout)
    except ValueError as error:
        last = done.stderr.strip().splitlines()[-1:] or ["it said nothing"]
        raise TransportError(
            f"the supervisor could not be run (exit code {done.exit_code}): {last[0]}",
            host=host,
            hint="is Python 3.8 or newer there? `paceline doctor` looks at every host",
        ) from error
    if done.exit_code == _CONFLICT_EXIT:
        raise Conflict(str(message.get("error", "the job is running already")), host=host)
    if done.exit_code == _UNKNOWN_EXIT:
        raise NotFound(str(message.get("error", "there is no such job")), host=host)
    if "job_id" not in message:
        raise EnvironmentFault(
            str(message.get("error", done.stdout.strip())), host=host, hint=message.get("hint")
        )
    return JobState.from_dict(message)
