"""`doctor`: what is here, what is missing, what to do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from paceline.api.completing import complete
from paceline.api.wiring import (
    SpecLike,
    SystemClock,
    load,
    open_calibrations,
    open_store,
    results_folder,
    state_home,
    wire,
)
from paceline.app.alike import clock_offsets, host_faults
from paceline.app.calibration import calibration_of
from paceline.app.delivery import places_of, verify_data
from paceline.app.doctor import (
    Check,
    check_alike,
    check_clocks,
    check_data_on_hosts,
    check_engine,
    check_folder,
    check_host,
    check_links,
    check_python,
    check_rehearsal_job,
)
from paceline.app.pairs import End, check_pairs, version_faults
from paceline.app.workplace import (
    chosen_interface,
    ends_of,
    meeting_port,
    open_workplace,
    rank_ends_of,
)
from paceline.datasets import locate
from paceline.errors import Interrupted, PacelineError
from paceline.model.calibration import Calibration
from paceline.model.spec import Spec
from paceline.planning.ec2.rights import policy
from paceline.planning.engine_setup import is_ours


def doctor(spec: SpecLike = None, *, overrides: Sequence[str] = ()) -> tuple[Check, ...]:
    """Look at everything that a run of the spec needs."""
    loaded = load(spec, overrides)
    looks: tuple[tuple[str, Callable[[], Sequence[Check]]], ...] = (
        ("python", lambda: [check_python()]),
        ("state folder", lambda: [check_folder("state folder", state_home())]),
        ("results folder", lambda: [check_folder("results folder", results_folder(None))]),
        ("data", lambda: [_check_data(loaded)] if loaded.cluster.provider == "local" else []),
        ("hosts", lambda: complete(_check_hosts(loaded))),
    )
    return tuple(check for name, look in looks for check in _looked(name, look))


def iam_policy() -> dict[str, Any]:
    """Return the least IAM policy with which everything that we do on EC2 works."""
    return policy()


def _looked(name: str, look: Callable[[], Sequence[Check]]) -> Sequence[Check]:
    """Look at one thing; not being able to is a finding like others."""
    try:
        return look()
    except Interrupted:
        raise
    except PacelineError as error:
        return [Check(name, "fail", str(error), error.hint)]
    except OSError as error:
        return [Check(name, "fail", str(error), "look at the rights of that path")]


def calibrate(spec: SpecLike = None, *, overrides: Sequence[str] = ()) -> Calibration:
    """Measure what the hosts of a spec and their links can do, and keep it."""
    loaded = load(spec, overrides)

    async def work() -> Calibration:
        wiring, clock = wire(loaded), SystemClock()
        async with open_workplace(
            wiring.provider, wiring.ground, open_store(), clock, wiring.prepare
        ) as place:
            port = meeting_port(place, loaded)
            kept = open_calibrations()
            return await calibration_of(rank_ends_of(place), port, kept, clock.now(), anew=True)

    return complete(work())


async def _check_hosts(spec: Spec) -> tuple[Check, ...]:
    wiring = wire(spec)
    store = open_store()
    async with open_workplace(wiring.provider, wiring.ground, store, SystemClock()) as place:
        checks: list[Check] = []
        bare = spec.runtime.kind == "bare"
        jobs = await asyncio.gather(*(check_rehearsal_job(place, name) for name in place.facts))
        for (name, facts), job in zip(place.facts.items(), jobs, strict=True):
            # What a venv or an image holds, only its making shows.
            needs_torch = spec.job.program is not None and bare
            checks += check_host(name, facts, needs_torch=needs_torch)
            checks.append(job)
        ends = ends_of(place)
        if spec.runtime.kind == "docker":
            checks += await asyncio.gather(*(check_engine(end, ours=is_ours(spec)) for end in ends))
        if any(end.host.ssh is not None for end in ends):
            checks += check_clocks(await clock_offsets(ends))
            checks += await _check_data_on_hosts(spec, ends)
        if len(ends) > 1:
            checks += check_alike(place.facts)
            ours = spec.job.command is None
            found = await check_pairs(ends, meeting_port(place, spec), chosen_interface(spec))
            different = version_faults(place.facts) if ours and bare else ()
            unable = host_faults(place.facts, ours=ours)
            checks += check_links(len(ends), (*different, *unable, *found))
        return tuple(checks)


async def _check_data_on_hosts(spec: Spec, ends: Sequence[End]) -> tuple[Check, ...]:
    """Let every host look through its data; a checksum takes a few seconds."""
    name, root = spec.data.dataset, spec.data.root
    if name == "fake" or spec.job.program is None:
        return ()
    places = await places_of(ends, name, root)
    missing = [host for host, place in places.items() if place.root is None]
    having = [end for end in ends if end.host.name not in missing]
    hint = f"`paceline data fetch {name} --hosts …` brings it to all hosts"
    checks = [Check(f"{host}: data", "warn", f"{name} is not there", hint) for host in missing]
    try:
        found = await verify_data(having, name, root)
    except PacelineError as error:
        return (*checks, Check("data", "fail", str(error), error.hint))
    return (*checks, *check_data_on_hosts(name, found))


def _check_data(spec: Spec) -> Check:
    name = spec.data.dataset
    if name == "fake" or spec.job.program is None:
        return Check("data", "ok", "no data set is needed")
    found = locate(name, Path(spec.data.root) if spec.data.root else None)
    if found is None:
        return Check(
            "data", "warn", f"{name} is not here", f"`paceline data fetch {name}` downloads it"
        )
    return Check("data", "ok", f"{name} at {found}")
