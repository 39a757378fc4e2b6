"""Single runs: train, run, logs, wait, stop, and the list of them."""

from __future__ import annotations

import asyncio
import re
import secrets
import tempfile
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path

from paceline.api.completing import OnInterrupt, complete
from paceline.api.lodging import Lodging
from paceline.api.voices import Voices
from paceline.api.wiring import (
    SpecLike,
    SystemClock,
    load,
    open_store,
    provider_of,
    rehearsal_mark,
)
from paceline.app.following import Following, listen_to
from paceline.app.jobs import FileChunk
from paceline.app.launch import (
    Launchpad,
    begin_run,
    connected,
    finish_run,
    is_on_hosts,
    may_have_left,
    refresh_run,
    stop_run,
)
from paceline.app.preflight import preflight
from paceline.app.provenance import surroundings
from paceline.app.results import log_lines
from paceline.app.scalars import ScalarFiles
from paceline.app.workplace import plan_for
from paceline.errors import Interrupted, NotFound, StorageError, TransportError, UsageError
from paceline.model.plan import Configuration, RunPlan
from paceline.model.record import RunRecord, RunState
from paceline.model.spec import Spec
from paceline.planning.study import training_configuration
from paceline.ports import RentalObserver, RunStore
from paceline.supervisor.job import LOGS_FOLDER

_LONGEST_NAME = 40
_LOOKS_AT_ONCE = 32
OnOutput = Callable[[str], None]


def train(
    spec: SpecLike = None,
    *,
    overrides: Sequence[str] = (),
    detach: bool = False,
    results: Path | str | None = None,
    keep: bool = False,
    watcher: RentalObserver | None = None,
    on_output: OnOutput | None = None,
    on_interrupt: OnInterrupt | None = None,
) -> RunRecord:
    """Train once; return how it ended, or at once if it is detached.

    `on_output` is given the ranks' output as it comes. A run that fails is returned, not raised.
    `on_interrupt` is called as soon as Ctrl-C is pressed; ending the ranks may take a while.
    Hosts that are rented for this go afterwards, unless `keep` or `detach` says otherwise.
    """
    loaded = load(spec, overrides)
    lodging = Lodging(loaded, open_store(results), results, keep or detach, watcher)
    launch = _Launch("train", lodging, on_output, detach)
    return complete(launch.carry_out(), interrupted=launch.interrupted, on_interrupt=on_interrupt)


def run(
    command: Sequence[str],
    spec: SpecLike = None,
    *,
    overrides: Sequence[str] = (),
    detach: bool = False,
    results: Path | str | None = None,
    keep: bool = False,
    watcher: RentalObserver | None = None,
    on_output: OnOutput | None = None,
    on_interrupt: OnInterrupt | None = None,
) -> RunRecord:
    """Run any command as the ranks of a job, with the ranks' variables set."""
    from json import dumps  # noqa: PLC0415

    if not command:
        raise UsageError("there is no command", hint="paceline run -- COMMAND and its words")
    name = () if spec is not None else (f"name={dumps(_name_of(command[0]))}",)
    # A command is typed where its files are, wherever the spec of the machines lies.
    here = () if any(word.startswith("job.workdir=") for word in overrides) else ("job.workdir=.",)
    words = (*here, "job.program=null", "job.script=null", f"job.command={dumps(list(command))}")
    loaded = load(spec, (*name, *overrides, *words))
    lodging = Lodging(loaded, open_store(results), results, keep or detach, watcher)
    launch = _Launch("run", lodging, on_output, detach)
    return complete(launch.carry_out(), interrupted=launch.interrupted, on_interrupt=on_interrupt)


def _name_of(program: str) -> str:
    """Return a name for the runs of a program, made of letters that every file system takes."""
    return re.sub(r"[^A-Za-z0-9.-]+", "-", Path(program).name)[:_LONGEST_NAME].strip("-.") or "run"


@dataclass(frozen=True)
class _Launch:
    """One run that is to be launched, under a name that is chosen beforehand."""

    kind: str
    lodging: Lodging
    on_output: OnOutput | None
    detach: bool
    token: str = field(default_factory=lambda: secrets.token_hex(3))

    @property
    def spec(self) -> Spec:
        """What is to be run."""
        return self.lodging.spec

    @property
    def store(self) -> RunStore:
        """Where it is written down."""
        return self.lodging.store

    @property
    def run_id(self) -> str:
        """The name of the run."""
        return f"{self.spec.name}-{self.token}"

    async def carry_out(self) -> RunRecord:
        """Launch the run and, unless it is detached, follow it to its end."""
        async with self.lodging.open() as place:
            await preflight(place, self.spec)
            configuration = training_configuration(self.spec, place.facts_in_order)
            plan = await plan_for(place, self.spec, configuration, self.run_id, measured=False)
            record = _planned(plan, configuration, self.kind, self.store, place.pad.clock.now())
            record = replace(
                record, provenance={**surroundings(place, record.hosts), **rehearsal_mark()}
            )
            running = await begin_run(place.pad, plan, record)
            if self.detach:
                return running
            listen = _listener(self.on_output)
            if not self.spec.study.tensorboard:
                return await finish_run(place.pad, plan, running, listen)
            scalars = ScalarFiles(running.folder)
            ended = await finish_run(place.pad, plan, running, _both(listen, scalars.feed))
            scalars.settle()
            return ended

    def interrupted(self) -> Interrupted:
        """Return what has become of the run after an interruption."""
        try:
            record = self.store.run(self.run_id)
        except NotFound:
            return Interrupted("interrupted; nothing had been started yet")
        if not record.state.ended:
            return _not_ended(record, "interrupted; the run goes on")
        how = "was stopped" if record.state is RunState.STOPPED else f"is {record.state.value}"
        return Interrupted(f"interrupted; the run {how}", hint=f"its files: {record.folder}")


def _not_ended(record: RunRecord, words: str) -> Interrupted:
    return Interrupted(words, hint=f"`paceline stop {record.run_id}` ends it")


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
    return _all_refreshed(store, store.runs())


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
                await _listen(pad, plan, _ignore)
            return await refresh_run(pad, plan, now)

    return complete(work(), interrupted=lambda: _only_waited(record))


def stop(run_id: str | None = None, *, grace_s: float | None = None) -> RunRecord:
    """Stop a run on all its hosts, and return how it stands then.

    `grace_s` is how long ranks that handle SIGTERM may take to save what they have; None is 10 s.
    """
    store = open_store()
    record = _to_stop(store) if run_id is None else find_run(store, run_id)
    plan = store.plan_of(record)

    async def work() -> RunRecord:
        async with _pad_for(plan, store) as pad:
            return await stop_run(pad, plan, record, grace_s=grace_s)

    words = "interrupted; the run may still go on"
    return complete(work(), interrupted=lambda: _not_ended(record, words))


def _to_stop(store: RunStore) -> RunRecord:
    """Return the newest run that goes on; else one that has left something on a host."""
    try:
        return find_run(store, None, only_running=True)
    except NotFound:
        found = next((run for run in store.runs() if _is_left_over(store, run)), None)
        if found is None:
            raise
        return found


def _is_left_over(store: RunStore, run: RunRecord) -> bool:
    """Whether somebody who stops what goes on, and names nothing, may mean a run that is over."""
    if run.study is not None or run.settled or run.state is RunState.UNREADABLE:
        return False
    try:
        plan = store.plan_of(run)
    except StorageError:
        return False  # nobody knows its hosts any more
    return is_on_hosts(plan) and may_have_left(plan, run, SystemClock().now())


def logs(
    run_id: str | None = None,
    *,
    follow: bool = False,
    process: str | None = None,
    marked: bool = False,
    on_output: OnOutput,
) -> RunRecord:
    """Give a run's output to `on_output`: what there is, and with `follow` what comes.

    `marked` puts before each line who says it, where there are several. The run is returned as it
    stands afterwards.
    """
    store = open_store()
    record = _refreshed(store, find_run(store, run_id))
    if record.state.ended:
        _give_kept(store, record, process, on_output, marked=marked)
        return record
    plan = store.plan_of(record)
    _require_process(record, process, _processes_of(plan))
    voices = Voices(plan) if marked and process is None else None
    listen = _listener(on_output, process, voices)

    async def work() -> RunRecord:
        async with _pad_for(plan, store) as pad:
            if not follow:
                await _give_so_far(pad, plan, listen)
                return record
            await _listen(pad, plan, listen)
            return await refresh_run(pad, plan, record)

    return complete(work(), interrupted=lambda: _only_waited(record))


def _only_waited(record: RunRecord) -> Interrupted:
    return _not_ended(record, "stopped waiting; the run goes on")


def _processes_of(plan: RunPlan) -> list[str]:
    return [process.name for host in plan.hosts for process in host.processes]


def _require_process(record: RunRecord, process: str | None, names: Sequence[str]) -> None:
    if process is not None and process not in names:
        raise NotFound(f"{record.run_id} has no process {process!r}; it has: {', '.join(names)}")


async def _listen(pad: Launchpad, plan: RunPlan, listen: Callable[[FileChunk], None]) -> None:
    await listen_to(Following(pad.links, plan, pad.clock), listen)


async def _give_so_far(pad: Launchpad, plan: RunPlan, listen: Callable[[FileChunk], None]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for host in Following(pad.links, plan, pad.clock).hosts:
            target = Path(folder) / host.host.name
            place = plan.place_on(host.host)
            await pad.links[host.host.name].get(f"{place.job_folder}/{LOGS_FOLDER}", target)
            for path in sorted(target.glob("*.log")):
                text = path.read_text(errors="replace")
                listen(FileChunk(f"{LOGS_FOLDER}/{path.name}", len(text), text))


def _give_kept(
    store: RunStore, record: RunRecord, process: str | None, on_output: OnOutput, *, marked: bool
) -> None:
    kept = log_lines(record)
    voices = Voices(store.plan_of(record)) if marked and process is None and kept else None
    if process not in kept:  # one that could not be started has no output, but it is known
        _require_process(record, process, _processes_of(store.plan_of(record)))
    for name, lines in kept.items():
        if process in (None, name):
            text = "".join(f"{line}\n" for line in lines)
            on_output(text if voices is None else voices.marked(name, text))


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
    return _all_refreshed(store, (record,))[0]


def _all_refreshed(store: RunStore, records: Sequence[RunRecord]) -> tuple[RunRecord, ...]:
    """Return the runs as they stand now; all that are not settled are looked at together.

    Otherwise each host that is away would be waited for in its turn.
    """
    turns = asyncio.Semaphore(_LOOKS_AT_ONCE)

    async def look(record: RunRecord) -> RunRecord:
        async with turns:
            return await _looked_at(store, record)

    async def work() -> tuple[RunRecord, ...]:
        return tuple(await asyncio.gather(*(look(record) for record in records)))

    if all(_is_known(record) for record in records):
        return tuple(records)
    return complete(work())


def _is_known(record: RunRecord) -> bool:
    return record.settled or record.state is RunState.UNREADABLE


async def _looked_at(store: RunStore, record: RunRecord) -> RunRecord:
    if _is_known(record):
        return record
    plan = store.plan_of(record)
    try:
        async with _pad_for(plan, store) as pad:
            return await refresh_run(pad, plan, record)
    except (TransportError, NotFound):
        return record  # of a host that cannot be asked now, we know what we knew


def _pad_for(plan: RunPlan, store: RunStore) -> AbstractAsyncContextManager[Launchpad]:
    return connected(provider_of(plan), plan.hosts, store, SystemClock())


def _ignore(chunk: FileChunk) -> None:
    del chunk


def _both(
    one: Callable[[FileChunk], None], other: Callable[[FileChunk], None]
) -> Callable[[FileChunk], None]:
    def listen(chunk: FileChunk) -> None:
        one(chunk)
        other(chunk)

    return listen


def _listener(
    on_output: OnOutput | None, process: str | None = None, voices: Voices | None = None
) -> Callable[[FileChunk], None]:
    def listen(chunk: FileChunk) -> None:
        folder, _, name = chunk.file.partition("/")
        if on_output is None or folder != LOGS_FOLDER:
            return
        speaker = name.removesuffix(".log")
        if process in (None, speaker):
            on_output(chunk.text if voices is None else voices.marked(speaker, chunk.text))

    return listen
