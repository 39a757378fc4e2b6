"""Single runs: train, run, logs, wait, stop, and the list of them."""

from __future__ import annotations

import asyncio
import contextlib
import re
import secrets
import tempfile
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from paceline.api.wiring import (
    SpecLike,
    SystemClock,
    complete,
    load,
    local_provider,
    open_store,
    wire,
)
from paceline.app.jobs import FileChunk, follow_job
from paceline.app.launch import (
    Launchpad,
    begin_run,
    connected,
    finish_run,
    refresh_run,
    stop_run,
)
from paceline.app.results import log_lines
from paceline.app.workplace import open_workplace, plan_for, preflight
from paceline.errors import NotFound, UsageError
from paceline.model.plan import Configuration, RunPlan
from paceline.model.record import RunRecord, RunState
from paceline.model.spec import Spec
from paceline.planning.study import training_configuration
from paceline.ports import RunStore, Transport
from paceline.supervisor.job import LOGS_FOLDER

OnOutput = Callable[[str], None]


def train(
    spec: SpecLike = None,
    *,
    overrides: Sequence[str] = (),
    detach: bool = False,
    results: Path | str | None = None,
    on_output: OnOutput | None = None,
) -> RunRecord:
    """Train once; return how it ended, or at once if it is detached.

    `on_output` is given the ranks' output as it comes. A run that fails is returned, not raised.
    """
    loaded = load(spec, overrides)
    return complete(_launch(loaded, "train", open_store(results), on_output, detach=detach))


def run(
    command: Sequence[str],
    spec: SpecLike = None,
    *,
    overrides: Sequence[str] = (),
    detach: bool = False,
    results: Path | str | None = None,
    on_output: OnOutput | None = None,
) -> RunRecord:
    """Run any command as the ranks of a job, with the ranks' variables set."""
    from json import dumps  # noqa: PLC0415

    if not command:
        raise UsageError("there is no command", hint="paceline run -- COMMAND and its words")
    name = () if spec is not None else (f"name={dumps(_name_of(command[0]))}",)
    words = ("job.program=null", "job.script=null", f"job.command={dumps(list(command))}")
    loaded = load(spec, (*name, *overrides, *words))
    return complete(_launch(loaded, "run", open_store(results), on_output, detach=detach))


def _name_of(program: str) -> str:
    """Return a name for the runs of a program, made of letters that every file system takes."""
    return re.sub(r"[^A-Za-z0-9.-]+", "-", Path(program).name).strip("-.") or "run"


async def _launch(
    spec: Spec, kind: str, store: RunStore, on_output: OnOutput | None, *, detach: bool
) -> RunRecord:
    wiring = wire(spec)
    clock = SystemClock()
    async with open_workplace(wiring.provider, wiring.ground, store, clock) as place:
        await preflight(place, spec)
        configuration = training_configuration(spec, place.facts_in_order)
        run_id = f"{spec.name}-{secrets.token_hex(3)}"
        plan = await plan_for(place, spec, configuration, run_id, measured=False)
        record = _planned(plan, configuration, kind, store, clock.now())
        running = await begin_run(place.pad, plan, record)
        if detach:
            return running
        return await finish_run(place.pad, plan, running, _listener(on_output))


def _planned(
    plan: RunPlan, configuration: Configuration, kind: str, store: RunStore, now: float
) -> RunRecord:
    return RunRecord(
        run_id=plan.run_id,
        kind=kind,
        state=RunState.PLANNED,
        configuration=configuration,
        folder=store.folder_for_run(plan.run_id),
        created_at=now,
        launcher=plan.launcher,
        hosts=tuple(host.host.name for host in plan.hosts),
    )


def runs() -> tuple[RunRecord, ...]:
    """Return the runs that are known, newest first, each as it stands now."""
    store = open_store()
    return tuple(_refreshed(store, record) for record in store.runs())


def wait(run_id: str | None = None) -> RunRecord:
    """Wait until a run has ended, and return how."""
    store = open_store()
    record = find_run(store, run_id)
    if record.state.ended:
        return record
    plan = store.plan_of(record)

    async def work() -> RunRecord:
        async with _pad_for(plan, store) as pad:
            now = await refresh_run(pad, plan, record)
            # Waiting is not owning: Ctrl-C ends the waiting and leaves the run alone.
            if not now.state.ended:
                followers = (_listen_to(link, plan, _ignore) for link in pad.links.values())
                await asyncio.gather(*followers)
            return await refresh_run(pad, plan, now)

    return complete(work())


def stop(run_id: str | None = None) -> RunRecord:
    """Stop a run on all its hosts, and return how it stands then."""
    store = open_store()
    record = find_run(store, run_id, only_running=run_id is None)
    plan = store.plan_of(record)

    async def work() -> RunRecord:
        async with _pad_for(plan, store) as pad:
            now = await refresh_run(pad, plan, record)
            return now if now.state.ended else await stop_run(pad, plan, now)

    return complete(work())


def logs(
    run_id: str | None = None,
    *,
    follow: bool = False,
    process: str | None = None,
    on_output: OnOutput,
) -> None:
    """Give a run's output to `on_output`: what there is, and with `follow` what comes."""
    store = open_store()
    record = _refreshed(store, find_run(store, run_id))
    if record.state.ended:
        _give_kept(record, process, on_output)
        return
    plan = store.plan_of(record)
    listen = _listener(on_output, process)

    async def work() -> None:
        async with _pad_for(plan, store) as pad:
            if not follow:
                await _give_so_far(pad, plan, listen)
                return
            await asyncio.gather(*(_listen_to(link, plan, listen) for link in pad.links.values()))
            await refresh_run(pad, plan, record)

    complete(work())


async def _listen_to(link: Transport, plan: RunPlan, listen: Callable[[FileChunk], None]) -> None:
    async with contextlib.aclosing(follow_job(link, plan)) as messages:
        async for message in messages:
            if isinstance(message, FileChunk):
                listen(message)


async def _give_so_far(pad: Launchpad, plan: RunPlan, listen: Callable[[FileChunk], None]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for name, link in pad.links.items():
            target = Path(folder) / name
            await link.get(f"{plan.job_folder}/{LOGS_FOLDER}", target)
            for path in sorted(target.glob("*.log")):
                text = path.read_text(errors="replace")
                listen(FileChunk(f"{LOGS_FOLDER}/{path.name}", len(text), text))


def _give_kept(record: RunRecord, process: str | None, on_output: OnOutput) -> None:
    kept = log_lines(record)
    if process is not None and process not in kept:
        names = ", ".join(kept) or "none"
        raise NotFound(f"{record.run_id} has no process {process!r}; it has: {names}")
    for name, lines in kept.items():
        if process in (None, name):
            on_output("".join(f"{line}\n" for line in lines))


def find_run(store: RunStore, run_id: str | None, *, only_running: bool = False) -> RunRecord:
    """Return a run by its id; without one, the newest that belongs to no study."""
    if run_id is not None:
        return store.run(run_id)
    states = (RunState.RUNNING,) if only_running else ()
    found = [record for record in store.runs(states=states) if record.study is None]
    if not found:
        what = "no run goes on" if only_running else "there is no run yet"
        raise NotFound(what, hint="`paceline ls` shows the runs")
    return found[0]


def _refreshed(store: RunStore, record: RunRecord) -> RunRecord:
    if record.state.ended:
        return record
    plan = store.plan_of(record)

    async def work() -> RunRecord:
        async with _pad_for(plan, store) as pad:
            return await refresh_run(pad, plan, record)

    return complete(work())


def _pad_for(plan: RunPlan, store: RunStore) -> AbstractAsyncContextManager[Launchpad]:
    return connected(local_provider(), plan.hosts, store, SystemClock())


def _ignore(chunk: FileChunk) -> None:
    del chunk


def _listener(
    on_output: OnOutput | None, process: str | None = None
) -> Callable[[FileChunk], None]:
    def listen(chunk: FileChunk) -> None:
        folder, _, name = chunk.file.partition("/")
        if on_output is None or folder != LOGS_FOLDER:
            return
        if process in (None, name.removesuffix(".log")):
            on_output(chunk.text)

    return listen
