"""Studies: plan, take, report, list; and the demo, which is a small study."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from paceline.api.completing import OnInterrupt, complete
from paceline.api.lodging import Lodging
from paceline.api.renting import plan_rented
from paceline.api.wiring import (
    SpecLike,
    SystemClock,
    load,
    open_calibrations,
    open_store,
    rehearsal_mark,
    say,
    wire,
)
from paceline.app.calibration import calibration_of
from paceline.app.places import Places
from paceline.app.planning import plan_everything
from paceline.app.provenance import code_digest, code_folder, provenance_of
from paceline.app.publish import Publisher
from paceline.app.study import StudyRunner, order_of
from paceline.app.workplace import Workplace, meeting_port, open_workplace, rank_ends_of
from paceline.datasets import locate
from paceline.errors import Interrupted, NotFound, PacelineError, StorageError, UsageError
from paceline.measure.comparing import compare as compare_summaries
from paceline.model.calibration import to_plain as to_plain_calibration
from paceline.model.plan import PlanReport
from paceline.model.record import RunState, StudyRecord, is_rehearsed
from paceline.model.spec import Spec, load_spec, to_plain
from paceline.model.summary import StudyOutcome, StudySummary
from paceline.planning.demo import demo_mapping
from paceline.planning.study import baseline_of, plan_study
from paceline.ports import Clock, RentalObserver, RunStore, StudyObserver
from paceline.reporting import comparing
from paceline.store.files import write_atomically
from paceline.transports.local import LocalTransport

SPEC_FILE = "spec.yaml"


@dataclass(frozen=True)
class StudyListing:
    """A study, and how far it is: `complete` or `3 of 6 samples`; and whether it was rehearsed."""

    record: StudyRecord
    state: str


def plan(spec: SpecLike = None, *, overrides: Sequence[str] = ()) -> PlanReport:
    """Return what the spec would run, down to the command lines; nothing is started."""
    loaded = load(spec, overrides)
    if loaded.cluster.provider == "ec2":
        return plan_rented(loaded)

    async def work() -> PlanReport:
        wiring = wire(loaded)
        clock = SystemClock()
        async with open_workplace(
            wiring.provider, wiring.ground, open_store(), clock, wiring.foresee
        ) as place:
            return await plan_everything(place, loaded)

    return complete(work())


def study(
    spec: SpecLike = None,
    *,
    overrides: Sequence[str] = (),
    results: Path | str | None = None,
    observer: StudyObserver | None = None,
    keep: bool = False,
    watcher: RentalObserver | None = None,
    on_interrupt: OnInterrupt | None = None,
) -> StudyOutcome:
    """Take every sample of a study that is still missing, and write its report.

    `on_interrupt` is called as soon as Ctrl-C is pressed; ending the ranks may take a while.
    Hosts that are rented for this go afterwards, unless `keep` says otherwise; `watcher` is told
    how they come and go.
    """
    from paceline.app.observers import Nobody  # noqa: PLC0415

    lodging = Lodging(load(spec, overrides), open_store(results), results, keep, watcher)
    work = _study(lodging, observer or Nobody())
    return complete(work, interrupted=_interrupted, on_interrupt=on_interrupt)


def _interrupted() -> Interrupted:
    return Interrupted(
        "interrupted; everything that was started has been stopped",
        hint="what was measured is kept: the same command again goes on from there",
    )


async def _study(lodging: Lodging, observer: StudyObserver) -> StudyOutcome:
    spec, store, clock = lodging.spec, lodging.store, SystemClock()
    async with Places(spec, lodging.open) as places:
        baseline = baseline_of(spec)
        place = await places.look(baseline)
        planned = plan_study(spec, place.facts_in_order, code_digest=code_digest(spec))
        await places.of(baseline)
        _make_way(store, planned.name)
        # Locked before anything is written: a second one must not change the first one's plan.
        with store.lock(planned.name):
            here = LocalTransport(place.cluster.master)
            provenance = {
                **await provenance_of(place, code_folder(spec), here),
                **await _calibration(place, spec, clock),
                **rehearsal_mark(),
            }
            record = store.open_study(planned, to_plain(spec), provenance)
            store.write_result(record, SPEC_FILE, spec_words(spec))
            publisher = Publisher(store, record, planned, spec)
            order = order_of(spec, planned)
            runner = StudyRunner(
                places, place.pad, spec, planned, record, observer, publisher, order
            )
            try:
                await runner.run()
            except BaseException:
                # Also after Ctrl-C: what was measured can be looked at. The first error counts.
                with contextlib.suppress(PacelineError):
                    publisher.finish(store.runs(study=str(record.folder)))
                raise
            return publisher.finish(store.runs(study=str(record.folder)))


def _make_way(store: RunStore, name: str) -> None:
    """Keep what was rehearsed and what is real apart, and say where the other one is now."""
    for old, new in store.make_way(name, rehearsed=bool(rehearsal_mark())):
        say(f"rehearsed and real results are kept apart: {old.name} is now {new}")


async def _calibration(place: Workplace, spec: Spec, clock: Clock) -> Mapping[str, object]:
    """Return what the hosts can do, as this sitting has measured it."""
    if not spec.study.calibrate:
        return {}
    port = meeting_port(place, spec)
    found = await calibration_of(rank_ends_of(place), port, open_calibrations(), clock.now())
    return {"calibration": to_plain_calibration(found)}


def spec_words(spec: Spec) -> bytes:
    """Return a spec as YAML, every default written out and its secrets hidden."""
    from ruamel.yaml import YAML  # noqa: PLC0415 - only a study that is opened needs it

    text = io.BytesIO()
    text.write(b"# The spec of this study, every default written out; its secrets are left out.\n")
    YAML(typ="safe", pure=True).dump(to_plain(spec), text)
    return text.getvalue()


def demo_spec() -> Spec:
    """Return the spec of the demo: a few minutes of DCGAN on this machine."""
    from paceline.supervisor.cgroup import usable_cores  # noqa: PLC0415

    found = locate("cifar10")
    return load_spec(demo_mapping(usable_cores(), str(found) if found else None), ())


def demo_introduction(spec: Spec) -> str:
    """Return what the demo is about to do, in a sentence or two."""
    if spec.data.dataset == "fake":
        data = "generated images of CIFAR-10's shape (`paceline data fetch cifar10` gets the real)"
    else:
        data = f"CIFAR-10 from {spec.data.root}"
    return (
        "A study of how DCGAN training scales over the cores of this machine, one process and "
        f"one thread for each core, on {data}."
    )


def demo(
    spec: Spec | None = None,
    *,
    results: Path | str | None = None,
    observer: StudyObserver | None = None,
    on_interrupt: OnInterrupt | None = None,
) -> StudyOutcome:
    """Study how DCGAN training scales on this machine, in a few minutes."""
    return study(spec or demo_spec(), results=results, observer=observer, on_interrupt=on_interrupt)


def studies() -> tuple[StudyListing, ...]:
    """Return the studies that are known, newest first."""
    store = open_store()
    return tuple(StudyListing(record, _state_of(store, record)) for record in store.studies())


def _state_of(store: RunStore, record: StudyRecord) -> str:
    try:
        planned = {item.sample_id for item in store.study_plan(record).samples}
        runs = store.runs(study=str(record.folder))
    except PacelineError:
        return RunState.UNREADABLE.value
    # By the runs' outcomes alone: reading all their events would take cores from measurements.
    good = {run.sample_id for run in runs if run.state is RunState.SUCCEEDED} & planned
    state = "complete" if good == planned else f"{len(good)} of {len(planned)} samples"
    return f"{state}, rehearsed" if is_rehearsed(record.provenance) else state


def publisher_for(store: RunStore, record: StudyRecord) -> Publisher:
    """Return what makes the files of a study, from what the study has written down."""
    # Its script or data may have moved since; what was measured can be shown all the same.
    spec = load_spec(dict(record.spec), (), check_files=False)
    return Publisher(store, record, store.study_plan(record), spec)


def find_study(store: RunStore, name: str | None) -> StudyRecord:
    """Return a study by its name or folder; without one, the newest."""
    if name is not None:
        return store.study(name)
    known = store.studies()
    if not known:
        raise NotFound("there is no study yet", hint="`paceline demo` makes a first one")
    return known[0]


def report(
    study: str | None = None, *, form: str = "text", results: Path | str | None = None
) -> str:
    """Return the findings of a study as text, csv, json, html or markdown."""
    store = open_store(results)
    record = find_study(store, study)
    return publisher_for(store, record).render(store.runs(study=str(record.folder)), form)


def write_report(study: str | None = None, *, results: Path | str | None = None) -> Path:
    """Write the HTML report of a study into its folder again, and return its path."""
    store = open_store(results)
    record = find_study(store, study)
    outcome = publisher_for(store, record).finish(store.runs(study=str(record.folder)))
    if outcome.report_path is None:
        raise StorageError(outcome.trouble or "the report could not be written")
    return outcome.report_path


def compare(
    first: str, second: str, *, form: str = "text", results: Path | str | None = None
) -> str:
    """Return how the second study did against the first: text, csv, json, html or markdown."""
    store = open_store(results)
    made = compare_summaries(*(_findings(store, store.study(name)) for name in (first, second)))
    if form not in comparing.FORMS:
        raise UsageError(
            f"{form!r} is no form of a report", hint=f"one of {', '.join(comparing.FORMS)}"
        )
    return comparing.FORMS[form](made)


def write_comparison(first: str, second: str, *, results: Path | str | None = None) -> Path:
    """Write the comparison as a page into the folder of the second study; return its path."""
    store = open_store(results)
    name = f"comparison-with-{store.study(first).name}.html"
    page = compare(first, second, form="html", results=results)
    return store.write_result(store.study(second), name, page.encode("utf-8", "replace"))


def _findings(store: RunStore, record: StudyRecord) -> StudySummary:
    return publisher_for(store, record).findings(store.runs(study=str(record.folder)))


def save(path: Path, text: str) -> None:
    """Write a text to a file, atomically."""
    write_atomically(path.absolute(), text.encode())
