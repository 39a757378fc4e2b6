"""A workplace: the hosts of a spec, reached and looked at, ready to carry out runs."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from paceline.app.facts import gather_facts, inner_facts
from paceline.app.launch import Launchpad
from paceline.app.links import ask_route
from paceline.app.openfiles import room_for_hosts
from paceline.app.pairs import End
from paceline.errors import PacelineError
from paceline.model.host import Cluster, HostFacts
from paceline.model.plan import Configuration, Container, JobPlace, RunPlan
from paceline.model.spec import Spec
from paceline.planning.run import plan_run
from paceline.ports import Clock, Provider, RunStore, Transport

T = TypeVar("T")


@dataclass(frozen=True)
class Ground:
    """What holds on a host: the interpreter, our package, room for jobs.

    `base` is where everything that is ours lies, our files and our jobs. `workdir` is where ranks
    start if it is not the spec's folder, `script` where their script lies. `rank_python` and
    `container` are what they run in, if it is not `python` itself.
    """

    python: str
    import_path: str | None
    job_root: str
    workdir: str | None = None
    base: str = ""
    script: str | None = None
    rank_python: str | None = None
    container: Container | None = None

    def place_for(self, job_id: str) -> JobPlace:
        """Return where a job of this id lives on the host."""
        return JobPlace(
            job_folder=f"{self.job_root}/{job_id}",
            python=self.python,
            import_path=self.import_path,
            workdir=self.workdir,
            script=self.script,
            rank_python=self.rank_python,
            container=self.container,
        )

    @property
    def has_own(self) -> bool:
        """Whether ranks find something here that the spec does not name."""
        own = (self.workdir, self.script, self.rank_python, self.container)
        return any(item is not None for item in own)


# Makes a host ready for jobs, and says what holds there.
Grounding = Callable[[Transport], Awaitable[Ground]]
# Makes ready on all hosts together what the ranks of a spec need: code, a venv, an image.
Preparing = Callable[[Sequence[End], Mapping[str, Ground]], Awaitable[Mapping[str, Ground]]]


@dataclass(frozen=True)
class Workplace:
    """Everything that a run needs."""

    cluster: Cluster
    facts: Mapping[str, HostFacts]
    grounds: Mapping[str, Ground]
    pad: Launchpad

    @property
    def facts_in_order(self) -> tuple[HostFacts, ...]:
        """The hosts' facts in the order of their node ranks."""
        return tuple(self.facts[host.name] for host in self.cluster.hosts)


@asynccontextmanager
async def open_workplace(
    provider: Provider,
    grounding: Grounding,
    store: RunStore,
    clock: Clock,
    preparing: Preparing | None = None,
) -> AsyncIterator[Workplace]:
    """Reach all hosts, make them ready and look at them; let go of them whatever happens."""
    cluster = await provider.cluster()
    async with AsyncExitStack() as stack:
        stack.enter_context(room_for_hosts(len(cluster.hosts)))
        links = {}
        for host in cluster.hosts:
            links[host.name] = link = await provider.connect(host)
            stack.push_async_callback(link.close)
        found = await all_or_named(
            _look_at(link, grounding, cluster.master.peer_address if len(links) > 1 else None)
            for link in links.values()
        )
        place = Workplace(
            cluster=cluster,
            facts={name: facts for name, (_, facts) in zip(links, found, strict=True)},
            grounds={name: ground for name, (ground, _) in zip(links, found, strict=True)},
            pad=Launchpad(links=links, store=store, clock=clock),
        )
        if preparing is not None:
            grounds = await preparing(ends_of(place), place.grounds)
            place = replace(place, grounds=grounds, facts=await _as_ranks_see(place, grounds))
        yield place


async def _as_ranks_see(place: Workplace, grounds: Mapping[str, Ground]) -> Mapping[str, HostFacts]:
    """Return the facts of the hosts, with what the ranks' own Python finds in place of ours."""

    async def seen(name: str) -> HostFacts:
        ground, facts = grounds[name], place.facts[name]
        if ground.rank_python is None:
            return facts
        link, python, path = place.pad.links[name], ground.rank_python, ground.import_path
        if ground.container is None:
            return seen_by(facts, await gather_facts(link, python, path))
        return seen_by(facts, await inner_facts(link, ground.container, python, path))

    found = await all_or_named(seen(name) for name in place.facts)
    return dict(zip(place.facts, found, strict=True))


def seen_by(host: HostFacts, inner: HostFacts | None) -> HostFacts:
    """Return a host's facts as a Python in a venv or a container sees them. Pure."""
    if inner is None:
        return replace(host, python_path="", python_version="", torch_version=None, environment={})
    return replace(
        host,
        cores=inner.cores,
        memory_bytes=inner.memory_bytes,
        python_path=inner.python_path,
        python_version=inner.python_version,
        torch_version=inner.torch_version,
        environment=inner.environment,
    )


async def _look_at(
    link: Transport, grounding: Grounding, master: str | None
) -> tuple[Ground, HostFacts]:
    """Make a host ready and ask it for its facts; where there is a master, for the way to it."""
    ground = await grounding(link)
    facts = await gather_facts(link, ground.python, ground.import_path)
    if master is not None:
        way = await ask_route(link, ground.python, ground.import_path, master)
        facts = replace(facts, interface=way.interface)
    return ground, facts


async def all_or_named(works: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Do the same on all hosts at once; if it fails, say so of every host where it does."""
    results = await asyncio.gather(*works, return_exceptions=True)
    errors = [result for result in results if isinstance(result, BaseException)]
    for error in errors:
        if len(errors) == 1 or not isinstance(error, PacelineError):
            raise error
    if errors:
        first = errors[0]
        lines = "\n".join(f"  {error}" for error in errors)
        hint = first.hint if isinstance(first, PacelineError) else None
        kind = type(first) if isinstance(first, PacelineError) else PacelineError
        raise kind(f"{len(errors)} of {len(results)} hosts are not ready:\n{lines}", hint=hint)
    return [result for result in results if not isinstance(result, BaseException)]


async def plan_for(
    place: Workplace, spec: Spec, configuration: Configuration, run_id: str, *, measured: bool
) -> RunPlan:
    """Plan one run on these hosts, with a port that is free now."""
    ground = place.grounds[place.cluster.master.name]
    link = place.pad.links[place.cluster.master.name]
    fresh = await gather_facts(link, ground.python, ground.import_path)
    here = ground.place_for(run_id)
    alike = len(place.grounds) == 1
    return plan_run(
        spec,
        configuration,
        place.cluster,
        place.facts,
        run_id,
        job_folder=here.job_folder,
        python=here.python,
        import_path=here.import_path,
        port=fresh.free_port or 0,
        secret=secrets.token_hex(16),
        vigil_port=_vigil_port(place, spec, fresh),
        measured=measured,
        places=None
        if alike and not ground.has_own
        else {name: ground.place_for(run_id) for name, ground in place.grounds.items()},
    )


def _vigil_port(place: Workplace, spec: Spec, fresh: HostFacts) -> int | None:
    """Return a port for the supervisors that is not the one where the ranks meet."""
    if spec.job.master_port is not None:
        return fresh.free_port if fresh.free_port != spec.job.master_port else None
    earlier = place.facts[place.cluster.master.name].free_port
    return earlier if earlier != fresh.free_port else None


def ends_of(place: Workplace) -> tuple[End, ...]:
    """Return the hosts as the ends of their links."""
    return tuple(
        End(
            host,
            place.pad.links[host.name],
            place.facts[host.name],
            place.grounds[host.name].python,
            place.grounds[host.name].import_path,
        )
        for host in place.cluster.hosts
    )


def rank_ends_of(place: Workplace) -> tuple[End, ...]:
    """Return the same with the Python that the ranks run in, where the host itself can run it."""
    pythons = {name: ground.rank_python or ground.python for name, ground in place.grounds.items()}
    return tuple(
        end
        if place.grounds[end.host.name].container is not None
        else replace(end, python=pythons[end.host.name])
        for end in ends_of(place)
    )


def meeting_port(place: Workplace, spec: Spec) -> int:
    """Return a port where the ranks could meet."""
    return spec.job.master_port or place.facts[place.cluster.master.name].free_port or 0


def chosen_interface(spec: Spec) -> str | None:
    """Return the interface that the user insists on, if there is one."""
    given = {**spec.runtime.env, **spec.job.env}
    names = (given.get(name) for name in ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"))
    return next((str(name) for name in names if name is not None), None)
