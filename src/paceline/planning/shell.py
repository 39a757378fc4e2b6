"""A run as lines that a person could type by hand, host by host. Secrets stay hidden."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from paceline.model.command import render
from paceline.model.plan import HostPlan, RunPlan
from paceline.supervisor.job import EVENTS_FOLDER, OUT_FOLDER


def shell_lines(run: RunPlan, host: HostPlan) -> tuple[str, ...]:
    """Return the lines for one host; all processes but the last go to the background."""
    if not host.processes:
        return ()
    folder = run.place_on(host.host).job_folder
    *background, last = [render(process.command) for process in host.processes]
    return (
        f"mkdir -p {shlex.join([f'{folder}/{EVENTS_FOLDER}', f'{folder}/{OUT_FOLDER}'])}",
        *(f"{line} &" for line in background),
        last,
        *(("wait",) if background else ()),
    )


def shell_script(run: RunPlan) -> str:
    """Return the lines of all hosts under their names."""
    return "\n".join(_script_lines(run)) + "\n"


def _script_lines(run: RunPlan) -> Iterator[str]:
    for host in run.hosts:
        yield f"# on {host.host.name} ({host.host.address}), node {host.node_rank}"
        yield from shell_lines(run, host)
