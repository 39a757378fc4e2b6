"""`doctor`: what is here, what is missing, what to do."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from paceline.api.wiring import (
    SpecLike,
    SystemClock,
    complete,
    load,
    open_store,
    results_folder,
    state_home,
    wire,
)
from paceline.app.doctor import Check, check_folder, check_host, check_python, check_rehearsal_job
from paceline.app.workplace import open_workplace
from paceline.datasets import locate
from paceline.model.spec import Spec


def doctor(spec: SpecLike = None, *, overrides: Sequence[str] = ()) -> tuple[Check, ...]:
    """Look at everything that a run of the spec needs."""
    loaded = load(spec, overrides)
    checks = [
        check_python(),
        check_folder("state folder", state_home()),
        check_folder("results folder", results_folder(None)),
        _check_data(loaded),
    ]
    return (*checks, *complete(_check_hosts(loaded)))


async def _check_hosts(spec: Spec) -> tuple[Check, ...]:
    wiring = wire(spec)
    store = open_store()
    async with open_workplace(wiring.provider, wiring.ground, store, SystemClock()) as place:
        checks: list[Check] = []
        for name, facts in place.facts.items():
            checks += check_host(name, facts)
            checks.append(await check_rehearsal_job(place, name))
        return tuple(checks)


def _check_data(spec: Spec) -> Check:
    name = spec.data.dataset
    if name == "fake":
        return Check("data", "ok", "generated images; nothing is needed")
    found = locate(name, Path(spec.data.root) if spec.data.root else None)
    if found is None:
        return Check(
            "data", "warn", f"{name} is not here", f"`paceline data fetch {name}` downloads it"
        )
    return Check("data", "ok", f"{name} at {found}")
