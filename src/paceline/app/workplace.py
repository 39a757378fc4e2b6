"""A workplace: the hosts of a spec, reached and looked at, ready to carry out runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from paceline.app.facts import gather_facts
from paceline.app.launch import Launchpad
from paceline.errors import MissingProgram, PortBusy
from paceline.model.command import Command
from paceline.model.host import Cluster, HostFacts
from paceline.model.plan import Configuration, RunPlan
from paceline.model.spec import Spec
from paceline.planning.run import plan_run
from paceline.ports import Clock, Provider, RunStore


@dataclass(frozen=True)
class Ground:
    """What holds on every host of a provider: the interpreter, our package, room for jobs."""

    python: str
    import_path: str | None
    job_root: str


@dataclass(frozen=True)
class Workplace:
    """Everything that a run needs."""

    cluster: Cluster
    facts: Mapping[str, HostFacts]
    ground: Ground
    pad: Launchpad

    @property
    def facts_in_order(self) -> tuple[HostFacts, ...]:
        """The hosts' facts in the order of their node ranks."""
        return tuple(self.facts[host.name] for host in self.cluster.hosts)


@asynccontextmanager
async def open_workplace(
    provider: Provider, ground: Ground, store: RunStore, clock: Clock
) -> AsyncIterator[Workplace]:
    """Reach all hosts and look at them; let go of them whatever happens."""
    cluster = await provider.cluster()
    async with AsyncExitStack() as stack:
        links = {}
        for host in cluster.hosts:
            links[host.name] = link = await provider.connect(host)
            stack.push_async_callback(link.close)
        found = await asyncio.gather(
            *(gather_facts(link, ground.python, ground.import_path) for link in links.values())
        )
        yield Workplace(
            cluster=cluster,
            facts=dict(zip(links, found, strict=True)),
            ground=ground,
            pad=Launchpad(links=links, store=store, clock=clock),
        )


async def plan_for(
    place: Workplace, spec: Spec, configuration: Configuration, run_id: str, *, measured: bool
) -> RunPlan:
    """Plan one run on these hosts, with a port that is free now."""
    link = place.pad.links[place.cluster.master.name]
    fresh = await gather_facts(link, place.ground.python, place.ground.import_path)
    return plan_run(
        spec,
        configuration,
        place.cluster,
        place.facts,
        run_id,
        job_folder=f"{place.ground.job_root}/{run_id}",
        python=place.ground.python,
        import_path=place.ground.import_path,
        port=fresh.free_port or 0,
        measured=measured,
    )


async def preflight(place: Workplace, spec: Spec) -> None:
    """Fail before the first run if something that it needs is missing."""
    if spec.job.program is not None:
        _require_torch(place)
    if spec.job.master_port is not None:
        await _require_free_port(place, spec.job.master_port)


async def _require_free_port(place: Workplace, port: int) -> None:
    master = place.cluster.master
    attempt = f"import socket; socket.create_server(('', {port})).close()"
    command = Command(argv=(place.ground.python, "-c", attempt))
    done = await place.pad.links[master.name].run(command, timeout_s=30.0)
    if not done.ok:
        said = done.stderr.strip().splitlines()[-1:] or ["no reason was given"]
        raise PortBusy(
            f"the ranks cannot meet at port {port}: {said[0]}",
            host=master.name,
            hint="leave job.master_port out, and a free port is found for each run",
        )


def _require_torch(place: Workplace) -> None:
    for name, facts in place.facts.items():
        if facts.torch_version is None:
            raise MissingProgram(
                f"{facts.python_path or place.ground.python} has no torch",
                host=name,
                hint="install it there (`pip install torch`), or name an interpreter that has "
                "it: `runtime: {python: /path/to/python}`",
            )
