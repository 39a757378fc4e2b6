"""A study: take every planned sample once, in order, whatever happens in between.

What was taken is never taken again. A sample that fails is recorded with its reason and tried
again within the spec's limit, and one whose machine was taken back is repeated; a run that an
earlier process of ours left behind is taken over.
"""

from __future__ import annotations

import secrets
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from paceline.app.evidence import next_of
from paceline.app.jobs import FileChunk
from paceline.app.launch import Launchpad, begin_run, finish_run, refresh_run
from paceline.app.places import Places
from paceline.app.progress import progress_of, remaining_s
from paceline.app.provenance import surroundings
from paceline.app.publish import Publisher
from paceline.app.purse import Purse
from paceline.app.results import read_sample
from paceline.app.scalars import ScalarFiles
from paceline.app.spending import earlier_periods, price_of
from paceline.app.workplace import Workplace, plan_for
from paceline.errors import JobFailed
from paceline.model.plan import Configuration, PlannedSample, RunPlan, StudyPlan
from paceline.model.record import REHEARSED, Failure, RunRecord, RunState, StudyRecord, is_rehearsed
from paceline.model.spec import Spec
from paceline.model.summary import Sample, StudyProgress
from paceline.ports import StudyObserver

_TELL_EVERY_S = 0.25
# Where machines are taken back this often, no sample will ever be done.
_MOST_INTERRUPTIONS = 10


@dataclass
class Taken:
    """The samples of a study so far: for each planned one, its latest run.

    `attempted` are those that this sitting has tried, within the limit of retries.
    """

    samples: dict[str, Sample] = field(default_factory=dict)
    attempted: set[str] = field(default_factory=set)

    def missing(self, plan: StudyPlan) -> list[PlannedSample]:
        """Return what is still to be taken, in the order of the plan."""
        return [item for item in plan.samples if not self.has(item.sample_id)]

    def has(self, sample_id: str) -> bool:
        """Whether a planned sample was taken and counts."""
        sample = self.samples.get(sample_id)
        return sample is not None and sample.failed is None

    def in_order(self, plan: StudyPlan) -> tuple[Sample, ...]:
        """Return the samples that there are, in the order of the plan."""
        found = (self.samples.get(item.sample_id) for item in plan.samples)
        return tuple(sample for sample in found if sample is not None)

    def walls(self) -> Mapping[Configuration, list[float]]:
        """Return how long the samples of each configuration took."""
        walls: dict[Configuration, list[float]] = defaultdict(list)
        for sample in self.samples.values():
            if sample.failed is None and sample.wall_s is not None:
                walls[sample.configuration].append(sample.wall_s)
        return walls


NextSample = Callable[[Sequence[PlannedSample], Sequence[Sample]], PlannedSample | None]


def in_order(missing: Sequence[PlannedSample], taken: Sequence[Sample]) -> PlannedSample | None:
    """Return the next sample of the plan; None when all are taken."""
    del taken
    return missing[0] if missing else None


def order_of(spec: Spec, plan: StudyPlan) -> NextSample:
    """Return in which order a study takes its samples: the plan's, or what it needs most."""
    if not spec.study.adaptive:
        return in_order
    return lambda missing, taken: next_of(spec, plan, missing, taken).sample


@dataclass
class StudyRunner:
    """One study at work.

    `next_sample` is asked which of the missing samples to take next, given those that there are;
    with None the study ends.
    """

    places: Places
    pad: Launchpad
    spec: Spec
    plan: StudyPlan
    study: StudyRecord
    observer: StudyObserver
    publisher: Publisher
    next_sample: NextSample = in_order
    _sitting: str = field(default_factory=lambda: secrets.token_hex(4))
    _purse: Purse = field(init=False)

    def __post_init__(self) -> None:
        """Begin to count the time and the money."""
        self._purse = Purse(self.spec.limits, self.pad.clock)

    async def run(self) -> tuple[Sample, ...]:
        """Take what is missing; return all samples, those of earlier times included."""
        taken = await self._recover()
        self.observer.planned(self.plan, len(taken.missing(self.plan)))
        self.publisher.publish(taken.in_order(self.plan))
        while (item := self._next(taken)) is not None:
            record, sample = await self._take(item, taken)
            taken.samples[item.sample_id] = sample
            taken.attempted.add(item.sample_id)
            self._tell(sample, taken)
            if sample.failed is not None and not taken.walls():
                # Nothing has ever worked: the rest of the grid would fail in the same way.
                raise _nothing_works(record, sample)
        return taken.in_order(self.plan)

    def _next(self, taken: Taken) -> PlannedSample | None:
        missing = [
            item for item in taken.missing(self.plan) if item.sample_id not in taken.attempted
        ]
        return self.next_sample(missing, taken.in_order(self.plan)) if missing else None

    def _tell(self, sample: Sample, taken: Taken) -> None:
        summary = self.publisher.publish(taken.in_order(self.plan))
        to_come = [item.configuration for item in taken.missing(self.plan)]
        left_s = remaining_s(taken.walls(), to_come)
        progress = StudyProgress(
            summary=summary,
            done=len(self.plan.samples) - len(to_come),
            total=len(self.plan.samples),
            remaining_s=left_s,
            spent_usd=self._purse.spent_usd,
            remaining_usd=self._purse.cost_usd(left_s),
            at_most=self.spec.study.adaptive,
        )
        self.observer.sampled(sample, progress)

    async def _recover(self) -> Taken:
        """Read what earlier processes of ours have taken, and settle what they left behind."""
        taken = Taken()
        settled = []
        # Oldest first, so that the latest attempt at a sample is the one that is kept.
        for record in reversed(self.pad.store.runs(study=str(self.study.folder))):
            now = record
            if not record.settled and record.state is not RunState.UNREADABLE:
                now = await self._take_over(record)
            settled.append(now)
            if now.sample_id and not taken.has(now.sample_id):
                taken.samples[now.sample_id] = read_sample(now, self.spec)
        self._purse.earlier = earlier_periods(settled)
        return taken

    async def _take_over(self, record: RunRecord) -> RunRecord:
        pad = (await self.places.of(record.configuration)).pad
        plan = pad.store.plan_of(record)
        now = await refresh_run(pad, plan, record)
        if now.state.ended:
            return now
        # Its ranks are still at work, and would disturb a second run: follow it to its end.
        self.observer.started(now)
        return await self._follow(pad, plan, now)

    async def _take(self, item: PlannedSample, taken: Taken) -> tuple[RunRecord, Sample]:
        attempt = interruptions = 0
        while True:
            place = await self.places.of(item.configuration)
            self._purse.open(price_of(self.spec, place.cluster))
            self._purse.require(remaining_s(taken.walls(), [item.configuration]))
            record = await self._run_once(place, item, attempt)
            sample = read_sample(record, self.spec)
            if record.state is RunState.INTERRUPTED and interruptions < _MOST_INTERRUPTIONS:
                # Nothing was wrong with it, so this is no retry; the hosts are asked for anew.
                interruptions += 1
                await self.places.leave()
                continue
            if sample.failed is None or attempt >= self.spec.limits.retries:
                return record, sample
            attempt += 1

    async def _run_once(self, place: Workplace, item: PlannedSample, attempt: int) -> RunRecord:
        # A new name for every try: what an earlier one left behind can never be mixed up with it.
        run_id = f"{item.sample_id}-{secrets.token_hex(3)}"
        plan = await plan_for(place, self.spec, item.configuration, run_id, measured=True)
        plan = self._purse.limited(plan)
        names = tuple(host.host.name for host in plan.hosts)
        record = RunRecord(
            run_id=run_id,
            kind="sample",
            state=RunState.PLANNED,
            configuration=item.configuration,
            folder=place.pad.store.folder_for_run(run_id, self.study),
            created_at=place.pad.clock.now(),
            launcher=plan.launcher,
            study=self.study.name,
            sample_id=item.sample_id,
            sample_index=item.index,
            attempt=attempt,
            hosts=names,
            provenance={
                **surroundings(place, names),
                **({REHEARSED: True} if is_rehearsed(self.study.provenance) else {}),
                "sitting": self._sitting,
                **self._purse.provenance,
            },
        )
        running = await begin_run(place.pad, plan, record)
        self.observer.started(running)
        ended = await self._follow(place.pad, plan, running)
        if ended.state is RunState.FAILED and self._purse.is_over:
            over = self._purse.over()
            cut = replace(ended, failure=Failure(f"it was cut short: {over.message}"))
            place.pad.store.update_run(cut)
            raise over
        return ended

    async def _follow(self, pad: Launchpad, plan: RunPlan, record: RunRecord) -> RunRecord:
        progress = progress_of(self.spec)
        scalars = ScalarFiles(record.folder) if self.spec.study.tensorboard else None
        told_at = 0.0

        def listen(chunk: FileChunk) -> None:
            nonlocal told_at
            if scalars is not None:
                scalars.feed(chunk)
            now = time.monotonic()
            if progress.feed(chunk) and now - told_at > _TELL_EVERY_S:
                told_at = now
                self.observer.progressed(record, progress.now)

        ended = await finish_run(pad, plan, record, listen)
        if scalars is not None:
            scalars.settle()
        return ended


def _nothing_works(record: RunRecord, sample: Sample) -> JobFailed:
    """Return what to raise for a first sample that failed: its own first words."""
    excerpt = record.failure.excerpt.rstrip() if record.failure else ""
    return JobFailed(
        f"{sample.sample_id}: {sample.failed}" + (f"\n{excerpt}" if excerpt else ""),
        hint=f"nothing has worked yet, so the study ends here; see {record.folder / 'logs'}",
    )
