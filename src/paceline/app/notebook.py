"""A notebook on the first host, with a crew on the others: begun, found again, reached."""

from __future__ import annotations

import json
import secrets
from importlib import resources

from paceline.app.jobs import job_status
from paceline.app.launch import begin_run
from paceline.app.workplace import Workplace
from paceline.errors import EnvironmentFault, MissingProgram, PlanError
from paceline.model.command import Command
from paceline.model.plan import RunPlan
from paceline.model.record import RunRecord, RunState
from paceline.model.spec import Spec
from paceline.planning.notebook import EXAMPLE, TOKEN_VARIABLE, plan_notebook
from paceline.ports import RunStore, Transport
from paceline.supervisor.job import JOB_FILE, OUT_FOLDER

KIND = "notebook"
_THERE = "import importlib.util, sys; sys.exit(importlib.util.find_spec('jupyterlab') is None)"


async def require_jupyterlab(place: Workplace) -> None:
    """Fail with the line to type if the first host has no JupyterLab."""
    host = place.cluster.master
    ground = place.grounds[host.name]
    if ground.container is not None:
        raise PlanError(
            "a notebook runs on the host itself, not in a container",
            hint="`-s runtime.kind=bare`, or `venv` with `packages: [jupyterlab, torch]`",
        )
    python = ground.rank_python or ground.python
    done = await place.pad.links[host.name].run(Command((python, "-c", _THERE)), timeout_s=30.0)
    if not done.ok:
        line = f"{python} -m pip install jupyterlab"
        access = host.ssh
        if access is not None:
            user = f"{access.user}@" if access.user else ""
            line = f"ssh {user}{host.address} {line}"
        raise MissingProgram(
            f"{python} has no JupyterLab",
            host=host.name,
            hint=f"`{line}`; or name one that has it: `-s runtime.python=/path/to/python`",
        )


async def begin_notebook(place: Workplace, spec: Spec, run_id: str) -> RunRecord:
    """Start JupyterLab and the crew, and put the example there."""
    await require_jupyterlab(place)
    host = place.cluster.master
    plan = plan_notebook(
        spec,
        place.cluster,
        place.facts,
        {name: ground.place_for(run_id) for name, ground in place.grounds.items()},
        run_id,
        port=place.facts[host.name].free_port or 0,
        token=secrets.token_urlsafe(24),
        secret=secrets.token_hex(16),
    )
    store = place.pad.store
    record = RunRecord(
        run_id=run_id,
        kind=KIND,
        state=RunState.PLANNED,
        configuration=plan.configuration,
        folder=store.folder_for_run(run_id),
        created_at=place.pad.clock.now(),
        launcher=plan.launcher,
        hosts=tuple(item.host.name for item in plan.hosts),
    )
    running = await begin_run(place.pad, plan, record)
    target = f"{plan.place_on(host).job_folder}/{OUT_FOLDER}/{EXAMPLE}"
    await place.pad.links[host.name].put_bytes(example(), target)
    return running


def example() -> bytes:
    """Return the notebook that comes along."""
    return (resources.files("paceline.planning") / "data" / EXAMPLE).read_bytes()


def running_notebook(store: RunStore, hosts: tuple[str, ...] | None = None) -> RunRecord | None:
    """Return the newest notebook that goes on; `hosts` are those that it has to have."""
    found = (record for record in store.runs(states=(RunState.RUNNING,)) if record.kind == KIND)
    return next((record for record in found if hosts in (None, record.hosts)), None)


async def token_of(link: Transport, plan: RunPlan) -> str:
    """Ask the host for the token; we ourselves keep it nowhere."""
    path = f"{plan.place_on(link.host).job_folder}/{JOB_FILE}"
    done = await link.run(Command(("cat", path)))
    try:
        job = json.loads(done.stdout)
        return str(job["processes"][0]["env"][TOKEN_VARIABLE])
    except (ValueError, LookupError, TypeError) as error:
        raise EnvironmentFault("the notebook's job is gone", host=link.host.name) from error


async def is_over(link: Transport, plan: RunPlan) -> bool:
    """Whether JupyterLab has ended."""
    state = await job_status(link, plan)
    return state is None or state.ended
