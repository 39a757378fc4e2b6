"""Looking on, from another terminal, while a study or a run goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from paceline.api.completing import complete
from paceline.api.studying import publisher_for
from paceline.api.wiring import SystemClock, open_store, provider_of, rehearsal_mark
from paceline.app.launch import Launchpad, connected
from paceline.app.progress import RunProgress
from paceline.app.watching import Connect, StudyWatcher, watch_run
from paceline.errors import Interrupted, NotFound
from paceline.model.plan import RunPlan
from paceline.model.record import RunRecord, RunState, StudyRecord, is_rehearsed
from paceline.ports import RunStore, StudyObserver

# A study that was begun a moment ago looks at its hosts before it is written down.
PATIENCE_S = 120.0
_LOOK_EVERY_S = 0.5


def watch(
    name: str | None = None,
    *,
    results: Path | str | None = None,
    observer: StudyObserver,
    on_wait: Callable[[str], None] | None = None,
    patience_s: float = PATIENCE_S,
) -> str:
    """Show a study or a run to an observer while it goes on; return in words how it stands then.

    Without a name, it is what goes on now, the newest first. A name that nothing has yet is
    waited for, since a study looks at its hosts first; `on_wait` is told so. Nothing is touched:
    whoever carries the study out does not notice.
    """
    store = open_store(results)

    async def work() -> str:
        found = await _await(store, name, on_wait, patience_s)
        if isinstance(found, StudyRecord):
            return await _watch_study(store, found, observer)
        return await _watch_run(store, found, observer)

    return complete(
        work(), interrupted=lambda: Interrupted("stopped looking; what goes on goes on")
    )


async def _await(
    store: RunStore, name: str | None, on_wait: Callable[[str], None] | None, patience_s: float
) -> StudyRecord | RunRecord:
    """Return what has a name, as soon as something has it; NotFound when patience is over."""
    clock = SystemClock()
    until = clock.monotonic() + patience_s
    told = False
    while True:
        over = name is None or clock.monotonic() >= until
        try:
            found = _find(store, name)
            if over or not _is_about_to_make_way(store, found):
                return found
        except NotFound:
            if over:
                raise
        if on_wait is not None and not told:
            on_wait(f"there is no {name} yet; waiting up to {patience_s:g} s for it to begin")
            told = True
        await asyncio.sleep(_LOOK_EVERY_S)


def _find(store: RunStore, name: str | None) -> StudyRecord | RunRecord:
    if name is None:
        return _newest(store)
    try:
        return store.study(name)
    except NotFound:
        return _study_of(store, store.run(name))


def _newest(store: RunStore) -> StudyRecord | RunRecord:
    running = store.runs(states=(RunState.RUNNING,))
    if running:
        return _study_of(store, running[0])
    known = store.studies()
    if not known:
        raise NotFound("nothing goes on", hint="`paceline ls` shows what there was")
    return known[0]


def _study_of(store: RunStore, record: RunRecord) -> StudyRecord | RunRecord:
    """Return the study that a run is a sample of; a run of its own stands for itself."""
    return store.study(str(record.folder.parent.parent)) if record.study else record


def _is_about_to_make_way(store: RunStore, found: StudyRecord | RunRecord) -> bool:
    """Whether it is a study that was rehearsed, and the real one is asked for, or the reverse."""
    return (
        isinstance(found, StudyRecord)
        and is_rehearsed(found.provenance) != bool(rehearsal_mark())
        and store.holder(found.name) is None
    )


async def _watch_study(store: RunStore, study: StudyRecord, observer: StudyObserver) -> str:
    watcher = StudyWatcher(
        store, publisher_for(store, study), observer, _connect_for(store), SystemClock()
    )
    if await watcher.watch():
        return f"{study.name} is complete: {study.folder}"
    return (
        f"{study.name} is not complete, and nobody is at work on it; the command that began it "
        "goes on from there"
    )


async def _watch_run(store: RunStore, record: RunRecord, observer: StudyObserver) -> str:
    if not record.state.ended:
        # How many epochs it trains is its own business: its iterations are told per epoch.
        progress = RunProgress()
        await watch_run(store, record, progress, observer, _connect_for(store))
        record = store.reread(record)
    state = "has ended" if record.state is RunState.RUNNING else f"is {record.state.value}"
    return f"{record.run_id} {state}: {record.folder}"


def _connect_for(store: RunStore) -> Connect:
    def connect(plan: RunPlan) -> AbstractAsyncContextManager[Launchpad]:
        return connected(provider_of(plan), plan.hosts, store, SystemClock())

    return connect
