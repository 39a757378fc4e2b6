"""One run, from its plan to its outcome: start everywhere, follow, stop together, collect."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

from paceline.app.following import Following, OnChunk, follow_all
from paceline.app.jobs import job_status, start_job, stop_job
from paceline.app.outcome import outcome_of, taken_back
from paceline.errors import Conflict, PacelineError, StorageError, TransportError
from paceline.model.command import Command
from paceline.model.plan import HostPlan, RunPlan
from paceline.model.record import Failure, RunRecord, RunState
from paceline.ports import Clock, Provider, RunStore, Transport
from paceline.supervisor.job import EVENTS_FOLDER, LOGS_FOLDER, OUT_FOLDER, JobState

_OWNER_SETTLES_WITHIN_S = 30.0
# Whoever looks at a run waits so long for a host that was lost, and for a day after the run.
_ANSWERS_WITHIN_S = 3.0
_LOOK_FOR_LOST_S = 86_400.0
_COLLECTED = (EVENTS_FOLDER, LOGS_FOLDER, OUT_FOLDER)
# How the job stands on the hosts that have said so: None on one that knows nothing of it. A host
# that is missing has not answered, and may be at work.
Answers = Mapping[str, JobState | None]


@dataclass(frozen=True)
class Launchpad:
    """What a run needs to be carried out: the ways to its hosts, the store, the time."""

    links: Mapping[str, Transport]
    store: RunStore
    clock: Clock


@asynccontextmanager
async def connected(
    provider: Provider, plan_hosts: tuple[HostPlan, ...], store: RunStore, clock: Clock
) -> AsyncIterator[Launchpad]:
    """Open the ways to the hosts of a plan, and close them whatever happens."""
    async with AsyncExitStack() as stack:
        links = {}
        for plan in plan_hosts:
            link = await provider.connect(plan.host)
            stack.push_async_callback(link.close)
            links[plan.host.name] = link
        yield Launchpad(links=links, store=store, clock=clock)


async def begin_run(pad: Launchpad, plan: RunPlan, record: RunRecord) -> RunRecord:
    """Write the run down, start it on all its hosts, and return while it goes on."""
    pad.store.create_run(record, plan)
    # Locked, because who looks at a run that its hosts do not know yet would take it for lost.
    with pad.store.lock(record):
        running = replace(record, state=RunState.RUNNING, started_at=pad.clock.now())
        pad.store.update_run(running)
        try:
            await _start_everywhere(pad, plan)
        except BaseException as error:
            await _uncut(_abandon(pad, plan, running, error))
            raise
    return running


async def finish_run(
    pad: Launchpad, plan: RunPlan, record: RunRecord, on_chunk: OnChunk
) -> RunRecord:
    """Follow a run to its end, bring its files home, and write down how it ended.

    When this is interrupted, the run is stopped everywhere and recorded as stopped. Whoever
    follows a run owns it: others leave the settling to us.
    """
    following = Following(pad.links, plan, pad.clock)
    with pad.store.lock(record):
        try:
            states = await follow_all(following, on_chunk, lambda: _stop_everywhere(pad, plan))
        except BaseException as error:
            # Also Ctrl-C: what was started must end and be written down before we go.
            notices = following.notices
            ended = await _uncut(_abandon(pad, plan, record, error, notices))
            if not _went_as_announced(error, notices):
                raise
            return ended
        return await _uncut(_settle(pad, plan, record, states))


async def stop_run(
    pad: Launchpad, plan: RunPlan, record: RunRecord, *, grace_s: float | None = None
) -> RunRecord:
    """Stop a run on all its hosts and return how it stands then.

    Nobody is asked first how the run stands: one that has ended keeps its outcome. A host that was
    lost when it ended may be back, with its ranks still on it. Where a host could not be told to
    stop, that is raised when all the others have been.
    """
    answers, errors = await _stop_everywhere(pad, plan, grace_s)
    if record.state.ended:
        now = await _finish_ended(pad, plan, record, answers)
    else:
        now = await _settle_once(pad, plan, record, answers)
    # A machine that was taken back does not answer, and nothing is left on it.
    if errors and not now.tidied and now.state is not RunState.INTERRUPTED:
        raise _not_stopped(errors, plan)
    return now


def _not_stopped(errors: Mapping[str, BaseException], plan: RunPlan) -> TransportError:
    host, error = next(iter(errors.items()))
    why = error.message if isinstance(error, PacelineError) else repr(error)
    others = [name for name in errors if name != host]
    also = f"; the same holds for {', '.join(others)}" if others else ""
    return TransportError(
        f"it could not be told to stop, and its ranks may still run: {why}{also}",
        host=host,
        hint=f"once it answers again, `paceline stop {plan.run_id}` ends them",
    )


async def _finish_ended(
    pad: Launchpad, plan: RunPlan, record: RunRecord, answers: Answers
) -> RunRecord:
    """Fetch and clear away what a run that is over has left, now that its hosts have answered.

    Whoever owns the run may be about to do that; so it is done under the run's lock.
    """

    async def finish(known: RunRecord) -> RunRecord:
        begun = [host for host in _active(plan) if _has_begun(answers.get(host.host.name))]
        trouble = await _collect(pad, plan, known, begun)
        return known if trouble is not None else await _clear_up(pad, plan, known, answers)

    try:
        with pad.store.lock(record):
            known = pad.store.reread(record)
            return known if known.tidied else await _uncut(finish(known))
    except Conflict:
        return pad.store.reread(record)


async def refresh_run(pad: Launchpad, plan: RunPlan, record: RunRecord) -> RunRecord:
    """Return the run as it stands now; one that ended while nobody looked is settled."""
    if record.state.ended:
        return record if record.tidied else await _finish_late(pad, plan, record)
    answers = await _ask_everywhere(pad, plan)
    if any(not state.ended for state in _states_of(answers).values()):
        return record
    return await _settle_once(pad, plan, record, answers)


async def _finish_late(pad: Launchpad, plan: RunPlan, record: RunRecord) -> RunRecord:
    """Clear up after a run whose hosts were not all cleared up when it ended.

    Whoever settled it may have been killed; or a host was lost then, and may be back, with ranks
    that still wait for the others.
    """
    if not may_have_left(plan, record, pad.clock.now()):
        return record
    links = [pad.links[host.host.name] for host in _active(plan)]
    if not all(await asyncio.gather(*(_answers(link) for link in links))):
        return record
    answers, _ = await _stop_everywhere(pad, plan)
    return await _finish_ended(pad, plan, record, answers)


def may_have_left(plan: RunPlan, record: RunRecord, now: float) -> bool:
    """Whether a run that is over is still to be looked after: something may be on its hosts."""
    if record.tidied or not record.state.ended or record.state is RunState.UNREADABLE:
        return False
    if not is_on_hosts(plan):
        return True
    # A machine that was taken back is gone for good, as one is that has been away for a day.
    gone = record.state is RunState.INTERRUPTED
    return not gone and now - (record.ended_at or record.created_at) <= _LOOK_FOR_LOST_S


def is_on_hosts(plan: RunPlan) -> bool:
    """Whether a run has other machines than this one."""
    return any(host.host.ssh is not None for host in plan.hosts)


async def _answers(link: Transport) -> bool:
    try:
        return (await link.run(Command(("true",)), timeout_s=_ANSWERS_WITHIN_S)).ok
    except PacelineError:
        return False


async def _ask_everywhere(pad: Launchpad, plan: RunPlan) -> Answers:
    hosts = [host.host.name for host in _active(plan)]
    asked = (job_status(pad.links[name], plan) for name in hosts)
    found = dict(zip(hosts, await asyncio.gather(*asked, return_exceptions=True), strict=True))
    answers = {name: item for name, item in found.items() if not isinstance(item, BaseException)}
    # A host that the others have given up may be gone for good: theirs is the last word then.
    firsts = (state.first_failure for state in _states_of(answers).values())
    lost = {first.host for first in firsts if first is not None}
    for name, result in found.items():
        expected = isinstance(result, TransportError) and name in lost
        if isinstance(result, BaseException) and not expected:
            raise result
    return answers


def _states_of(answers: Answers) -> Mapping[str, JobState]:
    return {name: state for name, state in answers.items() if state is not None}


def _has_begun(state: JobState | None) -> bool:
    return state is not None and bool(state.processes)


async def _uncut(work: Coroutine[Any, Any, RunRecord]) -> RunRecord:
    """Let some work come to its end even if we are interrupted in the middle of it."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise


async def _settle_once(
    pad: Launchpad, plan: RunPlan, record: RunRecord, answers: Answers
) -> RunRecord:
    """Settle an ended run, unless its owner is about to do so: then wait for that."""
    deadline = pad.clock.monotonic() + _OWNER_SETTLES_WITHIN_S
    while True:
        try:
            with pad.store.lock(record):
                known = pad.store.reread(record)
                # What we saw before we had the lock may have been a run on its way to its start.
                if not _states_of(answers):
                    answers = await _ask_everywhere(pad, plan)
                states = _states_of(answers)
                if known.state.ended or any(not state.ended for state in states.values()):
                    return known
                if not states:
                    # A start that is still on its way to a host must not come up later.
                    answers, errors = await _stop_everywhere(pad, plan)
                    if errors:
                        raise _not_stopped(errors, plan)
                return await _uncut(_settle(pad, plan, known, answers))
        except Conflict:
            known = pad.store.reread(record)
            starting = not _states_of(answers)
            if known.state.ended or starting or pad.clock.monotonic() > deadline:
                return known
        await pad.clock.sleep(0.1)


async def _settle(
    pad: Launchpad,
    plan: RunPlan,
    record: RunRecord,
    answers: Answers,
    verdict: tuple[RunState, Failure] | None = None,
) -> RunRecord:
    """Bring the files of an ended run home and write down its outcome, or that of a verdict."""
    states = _states_of(answers)
    # A job that was stopped before its start has left nothing that could be brought home.
    begun = [host for host in _active(plan) if _has_begun(states.get(host.host.name))]
    trouble = await _collect(pad, plan, record, begun)
    if isinstance(trouble, StorageError):
        # Our own disk, not the run, is at fault: whoever looks next tries again to fetch it.
        raise StorageError(
            trouble.message,
            host=trouble.host,
            hint=f"the run has ended, and its files wait on its host; free some space, and "
            f"`paceline logs {record.run_id}` fetches them",
        ) from trouble
    ended = outcome_of(record, states, now=pad.clock.now())
    if verdict is None and not states:
        verdict = RunState.LOST, Failure("its hosts know nothing of it: it was never started there")
    if trouble is not None and ended.state is RunState.SUCCEEDED:
        fault = Failure(trouble.message, host=trouble.host, hint=trouble.hint)
        verdict = verdict or (RunState.FAILED, fault)
    if verdict is not None:
        ended = replace(ended, state=verdict[0], failure=verdict[1])
    pad.store.update_run(ended)
    if trouble is not None:
        return ended
    return await _clear_up(pad, plan, ended, answers)


async def _clear_up(
    pad: Launchpad, plan: RunPlan, record: RunRecord, answers: Answers
) -> RunRecord:
    if not await _tidy(pad, plan, answers):
        return record  # whoever looks at the run next tries again
    tidied = replace(record, tidied=True)
    pad.store.update_run(tidied)
    return tidied


def _went_as_announced(error: BaseException, notices: Collection[str]) -> bool:
    """Whether a host that had said that it would go was gone sooner than we were done with it."""
    return isinstance(error, TransportError) and error.host in notices


def _active(plan: RunPlan) -> tuple[HostPlan, ...]:
    return tuple(host for host in plan.hosts if host.processes)


async def _stop_everywhere(
    pad: Launchpad, plan: RunPlan, grace_s: float | None = None, *, spared: str | None = None
) -> tuple[Answers, Mapping[str, BaseException]]:
    """Stop the job on every host, and return what they say and which could not be told why.

    A host that cannot be reached does not spare the others; the `spared` one is not asked.
    """
    names = [host.host.name for host in _active(plan) if host.host.name != spared]
    found = await asyncio.gather(
        *(stop_job(pad.links[name], plan, grace_s=grace_s) for name in names),
        return_exceptions=True,
    )
    results = list(zip(names, found, strict=True))
    answers = {name: item for name, item in results if not isinstance(item, BaseException)}
    return answers, {name: item for name, item in results if isinstance(item, BaseException)}


async def _start_everywhere(pad: Launchpad, plan: RunPlan) -> None:
    results = await asyncio.gather(
        *(start_job(pad.links[host.host.name], plan, host) for host in _active(plan)),
        return_exceptions=True,
    )
    for result in results:
        if isinstance(result, BaseException):
            raise result


async def _abandon(
    pad: Launchpad,
    plan: RunPlan,
    record: RunRecord,
    error: BaseException,
    notices: Collection[str] = (),
) -> RunRecord:
    """End what was started of a run that we cannot go on with, and write down why."""
    # A host that has just been given up is not waited for again; it is cleared up when it is back.
    lost = error.host if isinstance(error, TransportError) else None
    answers, _ = await _stop_everywhere(pad, plan, spared=lost)
    verdict = None
    if _went_as_announced(error, notices):
        verdict = RunState.INTERRUPTED, taken_back(lost)
    elif isinstance(error, PacelineError):
        failure = Failure(error.message, host=error.host, hint=error.hint)
        verdict = RunState.FAILED, failure
    return await _settle(pad, plan, record, answers, verdict)


async def _collect(
    pad: Launchpad, plan: RunPlan, record: RunRecord, hosts: Sequence[HostPlan]
) -> PacelineError | None:
    """Bring home what the hosts have; one that cannot be reached does not spare the others."""

    async def fetch(host: HostPlan) -> None:
        folder = plan.place_on(host.host).job_folder
        for name in _COLLECTED:
            await pad.links[host.host.name].get(f"{folder}/{name}", record.folder / name)

    results = await asyncio.gather(*(fetch(host) for host in hosts), return_exceptions=True)
    errors = [result for result in results if isinstance(result, BaseException)]
    for error in errors:
        if not isinstance(error, (StorageError, TransportError)):
            raise error
    return next((error for error in errors if isinstance(error, PacelineError)), None)


async def _tidy(pad: Launchpad, plan: RunPlan, answers: Answers) -> bool:
    """Remove the job's folder on its hosts, its content being here; say whether all were there.

    A host that has not answered keeps it: its ranks may be at work, and their words lie there.
    """

    async def remove(host: HostPlan) -> bool:
        if host.host.name not in answers:
            return False
        command = Command(argv=("rm", "-rf", "--", plan.place_on(host.host).job_folder))
        try:
            await pad.links[host.host.name].run(command)
        except TransportError:
            return False
        return True

    return all(await asyncio.gather(*(remove(host) for host in _active(plan))))
