"""Notebooks: JupyterLab on the first host, reached through a tunnel."""

from __future__ import annotations

import asyncio
import http.client
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from paceline.api.completing import OnInterrupt, complete
from paceline.api.running import stop
from paceline.api.wiring import SpecLike, SystemClock, load, open_store, provider_of, wire
from paceline.app.launch import Launchpad, connected, refresh_run
from paceline.app.notebook import begin_notebook, is_over, running_notebook, token_of
from paceline.app.workplace import open_workplace
from paceline.errors import EnvironmentFault, Interrupted, JobFailed, NotFound
from paceline.model.record import RunRecord
from paceline.model.spec import Spec
from paceline.planning.notebook import EXAMPLE
from paceline.ports import RunStore

_READY_WITHIN_S = 90.0
_LOOK_EVERY_S = 2.0


@dataclass(frozen=True)
class Notebook:
    """A notebook that answers: open the address in a browser; it bears the token."""

    run_id: str
    host: str
    url: str


def notebook(
    spec: SpecLike = None,
    *,
    overrides: Sequence[str] = (),
    results: Path | str | None = None,
    on_ready: Callable[[Notebook], None],
    on_interrupt: OnInterrupt | None = None,
) -> RunRecord:
    """Start JupyterLab, or find the one that runs on these hosts, and hold a tunnel to it.

    Returns when JupyterLab has ended. Ctrl-C closes the tunnel; JupyterLab goes on.
    """
    loaded, store = load(spec, overrides), open_store(results)

    async def work() -> RunRecord:
        record = await _found_or_begun(loaded, store)
        plan = store.plan_of(record)
        clock = SystemClock()
        async with connected(provider_of(plan), plan.hosts, store, clock) as pad:
            return await _hold(pad, record, on_ready)

    return complete(work(), interrupted=_goes_on, on_interrupt=on_interrupt)


def stop_notebook(results: Path | str | None = None) -> RunRecord:
    """End the notebook that goes on, and bring home what lies in its folder."""
    record = running_notebook(open_store(results))
    if record is None:
        raise NotFound("no notebook goes on", hint="`paceline notebook` starts one")
    return stop(record.run_id)


def _goes_on() -> Interrupted:
    return Interrupted(
        "the tunnel is closed; JupyterLab goes on",
        hint="`paceline notebook` opens it again, `paceline notebook --stop` ends it",
    )


async def _found_or_begun(spec: Spec, store: RunStore) -> RunRecord:
    wiring, clock = wire(spec), SystemClock()
    cluster = await wiring.provider.cluster()
    hosts = cluster.hosts[: spec.cluster.nodes or len(cluster.hosts)]
    known = running_notebook(store, tuple(host.name for host in hosts))
    if known is not None:
        plan = store.plan_of(known)
        async with connected(wiring.provider, plan.hosts, store, clock) as pad:
            now = await refresh_run(pad, plan, known)
        if not now.state.ended:
            return now
    async with open_workplace(
        wiring.provider, wiring.ground, store, clock, wiring.prepare
    ) as place:
        return await begin_notebook(place, spec, f"notebook-{secrets.token_hex(3)}")


async def _hold(
    pad: Launchpad, record: RunRecord, on_ready: Callable[[Notebook], None]
) -> RunRecord:
    """Open the tunnel, say where it leads, and keep it until JupyterLab has ended."""
    plan = pad.store.plan_of(record)
    host = plan.hosts[0].host
    link = pad.links[host.name]
    token = await token_of(link, plan)
    port = await link.tunnel(plan.master_port)
    deadline = pad.clock.monotonic() + _READY_WITHIN_S
    while not await asyncio.to_thread(_answers, port, token):
        if await is_over(link, plan):
            ended = await refresh_run(pad, plan, record)
            failure = ended.failure
            raise JobFailed(
                f"JupyterLab did not start: {failure.reason if failure else 'it ended'}\n"
                + (failure.excerpt if failure else ""),
                host=host.name,
                hint=f"see {ended.folder / 'logs'}",
            )
        if pad.clock.monotonic() > deadline:
            raise EnvironmentFault(
                f"JupyterLab does not answer within {_READY_WITHIN_S:g} s",
                host=host.name,
                hint=f"`paceline logs {record.run_id}` shows what it says",
            )
        await pad.clock.sleep(0.3)
    url = f"http://127.0.0.1:{port}/lab/tree/{EXAMPLE}?token={token}"
    on_ready(Notebook(record.run_id, host.name, url))
    while not await is_over(link, plan):
        await pad.clock.sleep(_LOOK_EVERY_S)
    return await refresh_run(pad, plan, record)


def _answers(port: int, token: str) -> bool:
    """Whether JupyterLab answers at the near end of the tunnel, and knows the token."""
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=5.0)
    try:
        line.request("GET", "/api/contents?content=0", headers={"Authorization": f"token {token}"})
        return line.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        line.close()
