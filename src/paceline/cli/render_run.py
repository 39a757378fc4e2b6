"""How a run ended, as a person or a script wants to read it."""

from __future__ import annotations

from paceline.cli import show
from paceline.errors import Interrupted, JobFailed, MissingProgram, PacelineError
from paceline.model.record import Failure, RunRecord, RunState


def show_run(record: RunRecord, *, as_json: bool, detached: bool = False) -> None:
    """Print a run's outcome; raise JobFailed where it went wrong."""
    if as_json:
        show.out_json(record)
    if detached and not record.state.ended:
        if not as_json:
            show.out(record.run_id)
        show.say(f"running; `paceline logs -f {record.run_id}` shows it, `paceline stop` ends it")
        return
    if record.state is RunState.SUCCEEDED:
        took = show.duration(record.wall_s)
        show.say(f"{record.run_id} succeeded in {took}; files: {record.folder}")
        return
    raise failure_of(record)


def failure_of(record: RunRecord) -> PacelineError:
    """Return what to raise for a run that did not succeed: first its own first words."""
    failure = record.failure
    if record.state is RunState.STOPPED:
        return Interrupted(f"{record.run_id} was stopped", hint=f"files: {record.folder}")
    if failure is None:
        return JobFailed(f"{record.run_id} is {record.state.value}", hint=f"see {record.folder}")
    # One that hung has no exit code either, but comes with a hint.
    if failure.process is not None and failure.exit_code is None and failure.hint is None:
        return MissingProgram(failure.excerpt, host=failure.host, hint="is it installed there?")
    return JobFailed(
        f"{record.run_id}: {failure_words(failure)}",
        host=failure.host,
        hint=failure.hint or f"the whole output is in {record.folder / 'logs'}",
    )


def failure_words(failure: Failure) -> str:
    """Return why a run failed, with the first words of its own if it had any."""
    excerpt = f"\n{failure.excerpt.rstrip()}" if failure.excerpt else ""
    return f"{failure.reason}{excerpt}"
