"""The runtime `docker`: an image that is built once, brought to all hosts, and loaded there.

On every host an image bears its own identity as its tag, so that nothing is carried twice and a
job never runs in an image that was built a moment later.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from paceline.app.engines import LINGER, EngineFound, find_engine
from paceline.app.here import Here
from paceline.app.outfitting import ensure_engine
from paceline.app.pairs import End
from paceline.app.shipping import LOAD_S, SHORT_S, Engine, failed, ship
from paceline.app.sync import folder_name, sync
from paceline.app.tree import DOCKER_IGNORES, tree_of
from paceline.app.workplace import Ground, all_or_named
from paceline.errors import EnvironmentFault, MissingProgram, PacelineError
from paceline.model.command import Command
from paceline.model.host import HostFacts
from paceline.model.plan import Container
from paceline.model.spec import Spec
from paceline.planning.engine_setup import is_ours
from paceline.planning.images import (
    build_command,
    build_place,
    container_options,
    image_name,
    mounts_for,
    tagged,
)

_BUILD_S = 7200.0
PYTHON = "python3"


async def prepare_docker(
    spec: Spec, ends: Sequence[End], grounds: Mapping[str, Ground], here: Here
) -> Mapping[str, Ground]:
    """Have the image of a spec on all hosts; return the grounds with their containers."""
    found = await all_or_named(_engine_on(spec, end, here) for end in ends)
    engines = [Engine(one, end.link, end) for one, end in zip(found, ends, strict=True)]
    for end, one in zip(ends, found, strict=True):
        _say_how(end.host.name, one, here)
    source, name = await _source_of(spec, engines, grounds, here)
    identity = await source.has(name)
    if identity is None:
        raise EnvironmentFault(f"there is no image {name} {source.where}")
    own = tagged(name, identity)
    await source.say("tag", name, own)
    lacking = [engine for engine in engines if await engine.has(own) is None]
    if lacking:
        await ship(own, source, lacking, grounds, here)
    # Under its own name as well, for those who type `docker run` there.
    await all_or_named(engine.say("tag", own, name) for engine in engines)
    return _with_containers(spec, own, ends, grounds, {e.link.host.name: e.found for e in engines})


async def _engine_on(spec: Spec, end: End, here: Here) -> EngineFound:
    """Return the engine of a host; one that we have rented ourselves is given one."""
    try:
        return await find_engine(end.link, end.facts)
    except MissingProgram:
        if not is_ours(spec):
            raise
    await ensure_engine(end, here.say)
    return await find_engine(end.link, end.facts)


async def foresee_docker(
    spec: Spec, ends: Sequence[End], grounds: Mapping[str, Ground]
) -> Mapping[str, Ground]:
    """Return the grounds with the containers that there will be, as far as can be known."""
    found = await all_or_named(_likely_engine(end) for end in ends)
    engines = {end.host.name: one for end, one in zip(ends, found, strict=True)}
    return _with_containers(spec, image_name(spec), ends, grounds, engines)


def _say_how(host: str, found: EngineFound, here: Here) -> None:
    if found.through_sudo:
        words = "its engine is spoken to through sudo, for its user may not speak to it"
        here.say(f"{host}: {words}")
    if found.is_rootless and not found.lingers:
        here.say(f"{host}: {LINGER}")


async def _likely_engine(end: End) -> EngineFound:
    """Return the engine that a host has, or will have when somebody has installed it."""
    try:
        return await find_engine(end.link, end.facts, look_only=True)
    except MissingProgram:
        return EngineFound(("docker",), 0, 0, "")


def _with_containers(
    spec: Spec,
    image: str,
    ends: Sequence[End],
    grounds: Mapping[str, Ground],
    engines: Mapping[str, EngineFound],
) -> Mapping[str, Ground]:
    made = {}
    for end in ends:
        name, ground = end.host.name, grounds[end.host.name]
        container = Container(
            engine=engines[name].words,
            image=image,
            mounts=_mounts(spec, end, ground, engines[name]),
            options=(*_options(engines[name], end.facts), *spec.runtime.options),
        )
        python = spec.runtime.python or PYTHON
        made[name] = replace(ground, rank_python=python, container=container)
    return made


def _options(engine: EngineFound, facts: HostFacts) -> tuple[str, ...]:
    return container_options(
        podman=engine.words[-1] == "podman",
        user=None if engine.uid == 0 or engine.is_rootless else (engine.uid, engine.gid),
        gpus=bool(facts.gpus),
        cache=engine.cache,
    )


def _mounts(spec: Spec, end: End, ground: Ground, engine: EngineFound) -> tuple[str, ...]:
    package = None
    if end.host.ssh is None and ground.import_path is not None:
        # Here our package lies elsewhere, behind a link.
        package = str((Path(ground.import_path) / "paceline").resolve())
    return mounts_for(
        spec,
        workdir=ground.workdir or spec.job.workdir,
        script=ground.script or spec.job.script,
        import_path=ground.import_path,
        package=package,
        cache=engine.cache,
    )


async def _source_of(
    spec: Spec, engines: Sequence[Engine], grounds: Mapping[str, Ground], here: Here
) -> tuple[Engine, str]:
    """Return the engine that has the image, built or found or pulled, and the image's name."""
    name = image_name(spec)
    first = engines[0]
    at_home = first.end is not None and first.end.host.ssh is None
    if spec.runtime.dockerfile is not None:
        source = first if at_home else await _builder(spec, first, here)
        await _build(spec, name, source, grounds, here)
        return source, name
    local = None if at_home else await _own_engine(here)
    if local is not None and await local.has(name) is not None:
        return local, name
    for engine in engines:
        if await engine.has(name) is not None:
            return engine, name
    here.say(f"pulling {name} {first.where} …")
    try:
        await first.say("pull", name, timeout_s=LOAD_S)
    except EnvironmentFault as error:
        raise EnvironmentFault(
            f"the image {name} is neither here nor on a host, and cannot be pulled: "
            f"{error.message}",
            host=error.host,
            hint=f"name a `dockerfile` to build it from, or build it: docker build -t {name} .",
        ) from error
    return first, name


async def _own_engine(here: Here) -> Engine | None:
    try:
        return Engine(await find_engine(here.link), here.link)
    except PacelineError:
        return None


async def _builder(spec: Spec, first: Engine, here: Here) -> Engine:
    """Return the engine that builds: ours where we have one that makes what the hosts run."""
    wanted = build_place(spec)
    if wanted == "host":
        return first
    own = await _own_engine(here)
    if wanted == "here":
        if own is None:
            raise MissingProgram(
                "there is no docker engine here that answers",
                hint="`runtime: {build_on: host}` builds on the first host",
            )
        return own
    if own is None or await _machine(own) != await _machine(first):
        return first
    return own


async def _machine(engine: Engine) -> str:
    done = await engine.link.run(Command(("uname", "-m")), timeout_s=SHORT_S)
    return done.stdout.strip()


async def _build(
    spec: Spec, name: str, engine: Engine, grounds: Mapping[str, Ground], here: Here
) -> None:
    dockerfile = Path(str(spec.runtime.dockerfile))
    context = Path(spec.runtime.context) if spec.runtime.context else dockerfile.parent
    there = str(context)
    if engine.end is not None and engine.end.host.ssh is not None:
        base = grounds[engine.end.host.name].base
        there = f"{base}/contexts/{folder_name(context)}"
        tree = tree_of(context, ignores=DOCKER_IGNORES, never=here.never)
        await sync([engine.end], tree, {engine.end.host.name: there}, here.stock / "drafts")
    here.say(f"building {name} {engine.where} …")
    command = build_command(spec, engine.found.words, name, there, dockerfile.read_bytes())
    done = await engine.link.run(command, timeout_s=_BUILD_S)
    if not done.ok:
        raise failed(f"{dockerfile} could not be built", done.stderr or done.stdout, engine)
